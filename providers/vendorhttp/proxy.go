package vendorhttp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// tunnel connects to the address through the proxy, by CONNECT. net/http can do so as well, but
// would hide the moment at which its TLS handshake with the vendor ends and the request begins. The
// gate needs that moment.
func (c *Client) tunnel(ctx context.Context, network, address string) (net.Conn, error) {
	proxy := c.opt.Proxy
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeouts.Dial+c.opt.Timeouts.TLS)
	defer cancel()
	port := cmp.Or(proxy.Port(), map[string]string{"http": "80", "https": "443"}[proxy.Scheme])
	conn, err := c.dial(ctx, network, net.JoinHostPort(proxy.Hostname(), port))
	if err == nil && proxy.Scheme == "https" {
		conn, err = handshake(ctx, conn, c.tls, proxy.Hostname())
	}
	if err != nil {
		return nil, fmt.Errorf("the proxy cannot be reached: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = connect(conn, address, proxy.User)
	if !stop() {
		err = cmp.Or(err, ctx.Err()) // the time limit has passed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect through the proxy: %w", err), conn.Close())
	}
	return conn, nil
}

// connect asks a proxy to connect to the address. After its answer the proxy sends nothing until we
// write, so the buffered reader cannot swallow bytes of the vendor.
func connect(conn io.ReadWriter, address string, user *url.Userinfo) error {
	to := &url.URL{Opaque: address}
	req := &http.Request{Method: http.MethodConnect, URL: to, Host: address, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		login := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		req.Header.Set("Proxy-Authorization", "Basic "+login)
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxHead)), req) //nolint:bodyclose // the rest of the connection is the tunnel, or is closed by the caller
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}
