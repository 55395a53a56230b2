package app

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/mediagate/mediagate/api/listener"
)

// Proxies are the trusted proxies: a number of them, or those in the networks. The setting is a
// number or a list.
type Proxies struct {
	Hops     int
	Networks []string
}

var proxiesType = reflect.TypeFor[Proxies]()

// proxiesOf parses the setting.
func proxiesOf(written any) (Proxies, error) {
	if list, ok := written.([]any); ok {
		p := Proxies{Networks: make([]string, len(list))}
		for i, entry := range list {
			if p.Networks[i], ok = entry.(string); !ok {
				return p, errors.New("must be a list of texts, or a whole number")
			}
		}
		return p, nil
	}
	hops, err := whole(written)
	if err != nil {
		err = errors.New(strings.Replace(err.Error(), wholeNumber, wholeNumber+" or a list of CIDRs", 1))
	}
	return Proxies{Hops: int(hops)}, err
}

// proxies validates the setting.
func (v *validator) proxies(path string, p Proxies) {
	v.check(p.Hops >= 0, path, "must not be negative")
	for i, entry := range p.Networks {
		if _, err := readProxies(entry); err != nil {
			v.add(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%q %s", entry, err))
		}
	}
}

// readProxies parses a network of proxies.
func readProxies(entry string) (netip.Prefix, error) {
	network, err := listener.ReadNetwork(entry)
	if err == nil && network.Bits() == 0 {
		err = errors.New("must not be every address: anybody could then claim to be anybody")
	}
	return network, err
}

// trusted converts the proxies for the API.
func (p Proxies) trusted() (listener.Proxies, error) {
	by := listener.Proxies{Hops: p.Hops}
	for _, entry := range p.Networks {
		network, err := readProxies(entry)
		if err != nil {
			return listener.Proxies{}, fmt.Errorf("trusted_proxies: %q %w", entry, err)
		}
		by.Networks = append(by.Networks, network)
	}
	return by, nil
}
