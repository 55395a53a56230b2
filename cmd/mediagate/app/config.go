package app

import (
	"time"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/providers/all"
	"github.com/mediagate/mediagate/storage/blob"
)

// Config has all settings of the gateway. The yaml tags are the names of the settings.
// `secret:"true"` hides a value in all output, `secret:"url"` only the credentials in it.
type Config struct {
	DatabaseURL        string           `yaml:"database_url" secret:"url" help:"PostgreSQL URL of our own tables"`
	DatabasePool       DatabasePool     `yaml:"database_pool"`
	DatabasePooler     string           `yaml:"database_pooler" help:"pooler between the process and PostgreSQL: none, or transaction (PgBouncer in that mode); empty: detected"`
	Temporal           Temporal         `yaml:"temporal"`
	S3                 S3               `yaml:"s3"`
	APIListen          string           `yaml:"api_listen" help:"address of the API"`
	APIConnections     APIConnections   `yaml:"api_connections"`
	IdleTimeout        time.Duration    `yaml:"idle_timeout" help:"how long a client's connection without a request is kept: longer than a proxy in front keeps it"`
	OpsListen          string           `yaml:"ops_listen" help:"address of a process's health and metrics"`
	AdminListen        string           `yaml:"admin_listen" help:"separate address of the admin API, which is then served only there; empty: api_listen"`
	AdminKey           string           `yaml:"admin_key" secret:"true" help:"the key of the operator admin, at least 32 characters"`
	AdminKeyFile       string           `yaml:"admin_key_file" help:"file that holds the admin key, instead of admin_key"`
	Operators          []Operator       `yaml:"operators" help:"operators with keys of their own, in addition to the admin key: name, key_hash or key_file, role"`
	OIDC               OIDC             `yaml:"oidc"`
	EncryptionKeys     []string         `yaml:"encryption_keys" secret:"true" help:"base64 of 32 bytes each: the first encrypts, all decrypt"`
	EncryptionKeysFile string           `yaml:"encryption_keys_file" help:"file that holds the encryption keys, one a line, instead of encryption_keys"`
	Retention          Retention        `yaml:"retention"`
	ShutdownGrace      time.Duration    `yaml:"shutdown_grace" help:"how long calls in progress may take to end at a shutdown"`
	PublicURL          string           `yaml:"public_url" secret:"url" help:"our public address, for links to uploads and for callbacks of vendors; its domain takes no webhooks"`
	OwnDomains         []string         `yaml:"own_domains" help:"more domains and CIDRs that count as our own"`
	Currency           string           `yaml:"currency" help:"of prices and balances"`
	CreditsPerUnit     int64            `yaml:"credits_per_unit" help:"credits a currency unit"`
	CatalogDir         string           `yaml:"catalog_dir" help:"folder of model files that add to the built-in models or change them"`
	VendorDir          string           `yaml:"vendor_dir" help:"folder of vendor files, in addition to the built-in vendors"`
	Outbound           Outbound         `yaml:"outbound"`
	Channels           []Channel        `yaml:"channels" help:"vendor accounts"`
	ChannelCredentials Credentials      `yaml:"channel_credentials" secret:"true" help:"credentials by channel, in place of channels[].credentials"`
	Groups             map[string]Group `yaml:"groups" help:"classes of accounts and keys"`
	AccountDefaults    AccountDefaults  `yaml:"account_defaults"`
	ArtModal           time.Duration    `yaml:"art_modal_timeout" help:"how long an art task waits for its modal parameters"`
	LinkTTL            time.Duration    `yaml:"link_ttl" help:"how long links to results in answers live"`
	MirrorMemory       ByteSize         `yaml:"mirror_memory" help:"memory of all copies in progress in a worker"`
	TaskTimeout        time.Duration    `yaml:"task_timeout" help:"from submit to the end of waiting for the vendor"`
	ParkTimeout        time.Duration    `yaml:"park_timeout" help:"how long a task may stay parked before it fails"`
	ParkRetry          time.Duration    `yaml:"park_retry" help:"time between two tries of a parked step"`
	QueueTimeout       time.Duration    `yaml:"queue_timeout" help:"how long a task may wait for a vendor's slot"`
	Moderation         Moderation       `yaml:"moderation"`
	CORSOrigins        []string         `yaml:"cors_origins" help:"origins that browsers may call from"`
	TrustedProxies     Proxies          `yaml:"trusted_proxies" help:"proxies in front of us that append to X-Forwarded-For: how many, or a list of CIDRs"`
	LogLevel           string           `yaml:"log_level" help:"debug, info, warn or error"`

	vendors all.Vendors // the built-in vendors, and those that Load read from VendorDir
}

// Operator is an operator with a key of its own.
type Operator struct {
	Name    string `yaml:"name"`
	KeyHash string `yaml:"key_hash,omitempty" secret:"true"` // SHA-256 of the key, hexadecimal
	KeyFile string `yaml:"key_file,omitempty"`               // the file that holds the key, instead of KeyHash
	Role    string `yaml:"role"`
}

// OIDC says how operators sign in to the console by OpenID Connect.
type OIDC struct {
	Issuer           string            `yaml:"issuer" secret:"url" help:"https address of the identity provider by which operators sign in to the console; empty: only keys do"`
	ClientID         string            `yaml:"client_id" help:"our id at the identity provider"`
	ClientSecretFile string            `yaml:"client_secret_file" help:"file that holds our secret at the identity provider, read at each sign-in"`
	Roles            map[string]string `yaml:"roles" help:"roles of people by what the provider says of them, claim=value: read, operate or admin"`
}

// AccountDefaults are the limits of accounts that name none; null is no limit.
type AccountDefaults struct {
	Rate          *int      `yaml:"rate" help:"submits a minute of an account that names no rate of its own; null: no limit"`
	InFlight      *int      `yaml:"in_flight" help:"open tasks of such an account, and jobs of cancelled ones that may still run; null: no limit"`
	Unpaid        *string   `yaml:"unpaid" help:"cost of such an account's jobs of cancelled tasks that may still run, by our prices; null: no limit"`
	UploadsPerDay *ByteSize `yaml:"uploads_per_day" help:"bytes that such an account may upload in a day; null: no limit"`
}

// limits converts the settings to their domain type.
func (d AccountDefaults) limits() mediagate.AccountLimits {
	l := mediagate.AccountLimits{Rate: d.Rate, InFlight: d.InFlight, UploadsPerDay: (*int64)(d.UploadsPerDay)}
	if d.Unpaid != nil {
		unpaid, _ := mediagate.ParseMicros(*d.Unpaid) // validated before
		l.Unpaid = &unpaid
	}
	return l
}

// DatabasePool bounds a process's connections to PostgreSQL.
type DatabasePool struct {
	Size   int           `yaml:"size" help:"connections of a process to PostgreSQL, at most"`
	MaxAge time.Duration `yaml:"max_age" help:"age at which a connection is replaced"`
}

// APIConnections bounds the connections of the API's clients.
type APIConnections struct {
	Total int `yaml:"total" help:"connections of clients to a process, at most"`
}

// Temporal says where the Temporal server is.
type Temporal struct {
	Address     string      `yaml:"address" help:"host:port of the Temporal frontend"`
	Namespace   string      `yaml:"namespace" help:"Temporal namespace"`
	TLS         TemporalTLS `yaml:"tls"`
	APIKey      string      `yaml:"api_key" secret:"true" help:"API key for Temporal; means TLS unless temporal.tls.mode is off"`
	Compression bool        `yaml:"compression" help:"compress what is sent to Temporal; costs CPU time, saves a network"`
	UIURL       string      `yaml:"ui_url" secret:"url" help:"where operators reach Temporal's UI, for links to the run of a task; empty: no links"`
}

// TemporalTLS says how we verify the Temporal server, and how we identify ourselves to it.
type TemporalTLS struct {
	Mode       string `yaml:"mode" help:"auto: TLS where another setting here or an api_key asks for it; on; off"`
	CA         string `yaml:"ca" help:"file of the authorities that may vouch for the server (PEM); empty: the system's"`
	Cert       string `yaml:"cert" help:"file of our certificate (PEM), read anew for each connection"`
	Key        string `yaml:"key" help:"file of its private key (PEM)"`
	ServerName string `yaml:"server_name" help:"name that the server's certificate must have; empty: the host of the address"`
}

// S3 says where results are kept. Without keys the SDK's default chain finds credentials.
type S3 struct {
	Endpoint        string `yaml:"endpoint" secret:"url" help:"URL of the S3 service; empty: the region's own"`
	PublicEndpoint  string `yaml:"public_endpoint" secret:"url" help:"URL by which clients reach the S3 service, for links; empty: endpoint"`
	Region          string `yaml:"region" help:"S3 region"`
	Bucket          string `yaml:"bucket" help:"bucket of the results"`
	AccessKeyID     string `yaml:"access_key_id" help:"S3 access key"`
	SecretAccessKey string `yaml:"secret_access_key" secret:"true" help:"S3 secret key"`
	PathStyle       bool   `yaml:"path_style" help:"bucket in the path instead of the host name"`
}

// Retention says how long data is kept. 0 means forever.
type Retention struct {
	Tasks      time.Duration `yaml:"tasks" help:"how long ended tasks are kept"`
	Results    time.Duration `yaml:"results" help:"how long result files are kept"`
	Deliveries time.Duration `yaml:"deliveries" help:"how long records of webhook attempts are kept"`
}

// Outbound says where requests may go.
type Outbound struct {
	Allow          []string      `yaml:"allow" help:"CIDRs that are exceptions to the address rules, any port"`
	WebhookTimeout time.Duration `yaml:"webhook_timeout" help:"bound of one webhook attempt, at most 30s"`
	Proxy          string        `yaml:"proxy" secret:"url" help:"http or https URL of the proxy of all calls to vendors; empty: none"`
}

// Channel is one vendor account.
type Channel struct {
	Name              string            `yaml:"name"`
	Provider          string            `yaml:"provider"`
	BaseURL           string            `yaml:"base_url,omitempty" secret:"url"`
	Proxy             string            `yaml:"proxy,omitempty" secret:"url"` // in place of outbound.proxy; "none" means no proxy
	Credentials       map[string]string `yaml:"credentials" secret:"true"`
	Options           map[string]string `yaml:"options,omitempty"`
	Models            []string          `yaml:"models,omitempty"`
	Priority          int               `yaml:"priority"`
	Weight            int               `yaml:"weight"`
	Concurrency       int               `yaml:"concurrency"`
	RequestsPerSecond float64           `yaml:"requests_per_second"`
	PollInterval      PollInterval      `yaml:"poll_interval"`
	CallbackSecret    string            `yaml:"callback_secret,omitempty" secret:"true"`
	Account           string            `yaml:"account,omitempty"`
	Former            []string          `yaml:"former,omitempty"`
	Passthrough       map[string]Passed `yaml:"passthrough,omitempty"`
}

// Credentials are the credentials of channels, by the channel's name.
type Credentials map[string]map[string]string

// PollInterval bounds the pace of polling.
type PollInterval struct {
	Min time.Duration `yaml:"min"`
	Max time.Duration `yaml:"max"`
}

// Passed names an uncataloged model that a channel serves.
type Passed struct {
	Upstream  string `yaml:"upstream"`
	Operation string `yaml:"operation"`
	Price     string `yaml:"price,omitempty"` // of a video or an image; empty means free
}

// Group is a class of accounts and keys.
type Group struct {
	PriceFactor string   `yaml:"price_factor"`
	Models      []string `yaml:"models"`
	Capacity    int      `yaml:"capacity"`
}

// Moderation says how prompts are checked before they are accepted.
type Moderation struct {
	Mode      string        `yaml:"mode" help:"off, words or endpoint"`
	Files     []string      `yaml:"files" help:"of mode words: lists, a word, phrase or /pattern/ a line"`
	URL       string        `yaml:"url" secret:"url" help:"of mode endpoint: its whole address, …/v1/moderations"`
	APIKey    string        `yaml:"api_key" secret:"true" help:"key of the endpoint"`
	Model     string        `yaml:"model" help:"model that the endpoint is asked for; empty: its own choice"`
	Timeout   time.Duration `yaml:"timeout" help:"bound of one call to the endpoint, at most 4s"`
	OnFailure string        `yaml:"on_failure" help:"closed: submits are refused while the endpoint fails; open: they pass"`
}

// What Moderation.Mode and OnFailure may be.
const (
	moderationOff      = "off"
	moderationWords    = "words"
	moderationEndpoint = "endpoint"
	failClosed         = "closed"
	failOpen           = "open"
)

const day = 24 * time.Hour

// Defaults are the settings that apply unless others are given.
func Defaults() Config {
	return Config{
		DatabasePool: DatabasePool{Size: 50, MaxAge: 30 * time.Minute},
		Temporal: Temporal{
			Address: "127.0.0.1:7233", Namespace: "mediagate", TLS: TemporalTLS{Mode: tlsAuto}, Compression: true,
		},
		S3:             S3{Region: "us-east-1", Bucket: "mediagate", PathStyle: true},
		APIListen:      ":8080",
		APIConnections: APIConnections{Total: 10_000},
		IdleTimeout:    75 * time.Second,
		OpsListen:      ":9090",
		Retention:      Retention{Tasks: 90 * day, Results: 30 * day, Deliveries: 30 * day},
		ShutdownGrace:  150 * time.Second,
		Currency:       "USD",
		CreditsPerUnit: 1000,
		Outbound:       Outbound{WebhookTimeout: 10 * time.Second},
		Groups:         map[string]Group{"default": {PriceFactor: "1", Models: []string{"*"}}},
		AccountDefaults: AccountDefaults{
			Rate: new(1200), InFlight: new(1000), Unpaid: new("25"), UploadsPerDay: new(ByteSize(20 << 30)),
		},
		ArtModal:     30 * time.Minute,
		LinkTTL:      blob.MaxLink,
		MirrorMemory: blob.DefaultMemory,
		TaskTimeout:  2 * time.Hour,
		ParkTimeout:  24 * time.Hour,
		ParkRetry:    5 * time.Minute,
		QueueTimeout: 24 * time.Hour,
		Moderation:   Moderation{Mode: moderationOff, Timeout: 3 * time.Second, OnFailure: failClosed},
		LogLevel:     "info",
	}
}

// newChannel returns the defaults of a channel.
func newChannel() Channel {
	return Channel{Weight: 1, RequestsPerSecond: 10, PollInterval: PollInterval{Min: 2 * time.Second}}
}

// channelDefaults fills in the settings that depend on others.
func channelDefaults(c Channel) Channel {
	if c.PollInterval.Max == 0 {
		c.PollInterval.Max = max(15*time.Second, c.PollInterval.Min)
	}
	return c
}
