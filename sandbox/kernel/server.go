package kernel

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config is what a Server needs.
type Config struct {
	Dir      string    // where jobs and calls are kept; one Server a folder
	Accounts []Account // none: each vendor's own
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
	Vendors  []Vendor
}

// Vendor is what a vendor's folder exports.
type Vendor struct {
	Name    string // in paths, settings and answers of the control endpoints
	Account Account
	Channel Channel
	Mount   func(*Service) http.Handler // paths begin after the vendor's name
	// Files makes the files of its jobs that Job.File does not know; nil where
	// there are none.
	Files func(j *Job, name string) (content *io.SectionReader, mimeType string, ok bool)
}

// NewVendor is a vendor whose customer has one credential, of this name and value, and
// whose API begins at the path.
func NewVendor(name, path, credential, value string, mount func(*Service) http.Handler) Vendor {
	credentials := func() map[string]string { return map[string]string{credential: value} }
	return Vendor{
		Name: name, Mount: mount,
		Account: Account{Provider: name, Credentials: credentials()},
		Channel: Channel{Provider: name, Path: path, Credentials: credentials()},
	}
}

// Account is one customer of a vendor. Jobs of one account are unknown to
// the others, as with the vendor. Where the vendor has two schemes, the
// credentials of each open the account.
type Account struct {
	Provider    string
	Credentials map[string]string // named as in a channel's settings
	Concurrency int               // jobs at once where the vendor refuses more; 0: no limit

	customer string // of several that the credentials open, see customer
}

// Address stands for that of the sandbox in the credentials of a channel.
const Address = "{sandbox}"

// Channel is how a gateway is set up to reach the vendor here.
type Channel struct {
	Provider    string
	Path        string // where the API begins, after the sandbox's own address
	Credentials map[string]string
}

// Server plays the vendors.
type Server struct {
	vendors  []Vendor
	accounts []Account
	store    *store
	log      *slog.Logger
	now      func() time.Time
	handler  http.Handler

	callbacks *http.Client
	calling   sync.WaitGroup  // one for each job that is told of
	life      context.Context // ends with Close
	end       context.CancelFunc
	closing   chan struct{}
	once      sync.Once
}

// New opens the folder, going on with what it holds.
func New(cfg Config) (*Server, error) {
	if cfg.Dir == "" {
		return nil, errors.New("sandbox: a folder is required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Accounts) == 0 {
		for _, v := range cfg.Vendors {
			cfg.Accounts = append(cfg.Accounts, v.Account)
		}
	}
	st, err := openStore(cfg.Dir, keptJobs)
	if err != nil {
		return nil, err
	}
	s := &Server{
		vendors: cfg.Vendors, accounts: cfg.Accounts, store: st, log: cfg.Logger, now: cfg.Now, closing: make(chan struct{}), callbacks: newCallbackClient(),
	}
	s.life, s.end = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	for _, v := range s.vendors {
		prefix := "/" + v.Name
		mux.Handle(prefix+"/", http.StripPrefix(prefix, v.Mount(&Service{server: s, vendor: v.Name})))
	}
	mux.HandleFunc("GET /media/{job}/{file}", s.handleDownload)
	s.mountControl(mux)
	s.handler = mux
	return s, nil
}

// Handler serves vendors, media and control.
func (s *Server) Handler() http.Handler { return s.handler }

// Close lets go of held connections and closes the store; calls that come
// later fail. It goes before the shutdown of the HTTP server, which would
// wait for the held ones.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closing)
		s.end()
		s.calling.Wait()
		s.callbacks.CloseIdleConnections()
		err = s.store.close()
	})
	return err
}

// customer finds the vendor's customer whose credential has the value. A value
// has variants, so that keys can be renewed: KEY~2 is another key of the same
// customer, KEY@NAME one of another customer, KEY@NAME~2 that one's second. What
// follows a * is how many jobs at once are taken from that customer: KEY@NAME*5.
func (s *Server) customer(provider, credential, value string) (Account, bool) {
	value, _, _ = strings.Cut(value, "~")
	value, limit, limited := strings.Cut(value, "*")
	value, customer, _ := strings.Cut(value, "@")
	for _, a := range s.accounts {
		if a.Provider == provider && value != "" && same(a.Credentials[credential], value) {
			a.customer = customer
			if limited {
				n, err := strconv.Atoi(limit)
				if err != nil || n < 1 {
					return Account{}, false
				}
				a.Concurrency = n
			}
			return a, true
		}
	}
	return Account{}, false
}

// ID names the account in the store, without a secret that signs.
func (a Account) ID() string {
	key := cmp.Or(a.Credentials["access_key"], a.Credentials["api_key"], a.Credentials["api_secret"])
	if a.customer != "" {
		key += "@" + a.customer
	}
	return fingerprint(key)
}
