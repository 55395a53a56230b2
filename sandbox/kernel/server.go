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

// Config configures a Server.
type Config struct {
	Dir      string    // of the journal; one Server for each folder
	Accounts []Account // empty: one for each vendor
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
	Vendors  []Vendor
}

// Vendor describes one vendor. Each vendor's folder exports one.
type Vendor struct {
	Name    string // in paths, credentials and control endpoints
	Account Account
	Channel Channel
	Mount   func(*Service) http.Handler // its paths lack the vendor's name
	// Files makes the files of its jobs that Job.File does not know. It is nil if there are
	// none.
	Files func(j *Job, name string) (content *io.SectionReader, mimeType string, ok bool)
}

// NewVendor returns a vendor whose customer has one credential, with this name and value, and
// whose API begins at the path.
func NewVendor(name, path, credential, value string, mount func(*Service) http.Handler) Vendor {
	credentials := func() map[string]string { return map[string]string{credential: value} }
	return Vendor{
		Name: name, Mount: mount,
		Account: Account{Provider: name, Credentials: credentials()},
		Channel: Channel{Provider: name, Path: path, Credentials: credentials()},
	}
}

// Account is one customer of a vendor. As with the real vendor, an account sees only its own
// jobs. If the vendor has two authentication schemes, the credentials of either open the
// account.
type Account struct {
	Provider    string
	Credentials map[string]string // named as in a channel's settings
	Concurrency int               // largest number of jobs at once; 0: no limit

	customer string // the NAME in KEY@NAME; see Server.customer
}

// Address is the placeholder for the sandbox's address in the credentials of a channel.
const Address = "{sandbox}"

// Channel is the configuration by which a gateway reaches the vendor here.
type Channel struct {
	Provider    string
	Path        string // of the API, after the sandbox's address
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
	calling   sync.WaitGroup  // one for each job with callbacks
	life      context.Context // ends with Close
	end       context.CancelFunc
	closing   chan struct{}
	once      sync.Once
}

// New returns a Server that keeps its journal in cfg.Dir. It continues with the jobs that the
// folder already holds.
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
		vendors: cfg.Vendors, accounts: cfg.Accounts, store: st, log: cfg.Logger, now: cfg.Now,
		closing: make(chan struct{}), callbacks: newCallbackClient(),
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

// Handler returns the handler of the vendors, the media and the control endpoints.
func (s *Server) Handler() http.Handler { return s.handler }

// Close cuts the connections that are held open and closes the journal. Later calls fail. Call
// it before the shutdown of the HTTP server, which would wait for those connections.
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

// customer returns the vendor's customer whose credential has the value. Each credential has
// variants, so that tests can renew keys and add customers: KEY~2 is another key of the same
// customer, KEY@NAME is a key of another customer, and KEY@NAME~2 is that customer's second key.
// KEY@NAME*5 limits that customer to five jobs at once.
func (s *Server) customer(provider, credential, value string) (Account, bool) {
	value, _, _ = strings.Cut(value, "~")
	value, limit, limited := strings.Cut(value, "*")
	value, customer, _ := strings.Cut(value, "@")
	for _, a := range s.accounts {
		if a.Provider == provider && value != "" && equalSecrets(a.Credentials[credential], value) {
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

// ID returns a name for the account in the store. It is a hash of the account's key and never
// contains a secret that signs tokens.
func (a Account) ID() string {
	key := cmp.Or(a.Credentials["access_key"], a.Credentials["api_key"], a.Credentials["api_secret"])
	if a.customer != "" {
		key += "@" + a.customer
	}
	return fingerprint(key)
}
