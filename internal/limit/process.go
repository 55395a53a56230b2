package limit

// Process holds all limits of a process. A nil field means no bound.
type Process struct {
	Connections *Limit // active connections of clients to the API; tenant: the client's address
	Overflow    *Limit // further connections, which get 503 except from the health endpoints; tenant: each connection
	UnknownKeys *Limit // lookups of keys that are not cached, from addresses with many failures; tenant: the client's network
	Requests    *Limit // requests with a body that are in progress; tenant: the account
	Waits       *Limit // long polls and event streams; tenant: the account
	Speeches    *Limit // speeches in progress; tenant: the account
	Bodies      *Limit // bytes of bodies in memory; tenant: the account
	Parsers     *Limit // large bodies being parsed; tenant: the account
	Uploads     *Limit // bytes of uploads on their way to the bucket; tenant: the account
	Quotes      *Limit // requests being validated by adapters; tenant: the account
	Moderation  *Limit // calls to the moderation endpoint; tenant: the account
	Starts      *Limit // runs that wait to be started; tenant: the account
	Starters    *Limit // starts of runs in progress; tenant: the account
	Writers     *Limit // database connections of transactions that move money; tenant: the account

	Inputs     *Limit // clients' files being checked; tenant: the account
	Lookups    *Limit // attempts that look for a channel; tenant: the account
	Calls      *Group // calls that make jobs, for each channel; tenant: the account
	Signals    *Limit // signals to runs whose job has ended; tenant: the channel
	PollCopies *Limit // results that pollers copy before they signal the run; tenant: the provider
	Copies     *Limit // results that runs copy; tenant: the provider
	CopyMemory *Limit // bytes of copies in memory; tenant: the provider
	Callbacks  *Limit // attempts at callbacks; tenant: the account
	Receivers  *Group // attempts at callbacks, for each account; tenant: the receiver
}

// Sizes are the sizes of limits that follow from the settings and the machine.
type Sizes struct {
	Connections  int64 // of clients
	BodyMemory   int64 // bytes
	LargestBody  int64 // bytes of the largest body
	UploadMemory int64 // bytes
	Writers      int64 // database connections for transactions that move money
	CopyMemory   int64 // bytes
}

// For makes the limits of a process.
func For(s Sizes) *Process {
	return &Process{
		Connections: New("connections", s.Connections),
		Overflow:    New("spare_connections", 64),
		UnknownKeys: New("suspects", 2),
		Requests:    New("requests", s.Connections/4),
		Waits:       New("waits", s.Connections/2),
		Speeches:    New("speeches", 2000),
		Bodies:      New("bodies", s.BodyMemory+2*s.LargestBody),
		Parsers:     New("parsers", 2),
		Uploads:     New("uploads", s.UploadMemory),
		Quotes:      New("quotes", 16),
		Moderation:  New("moderation", 64),
		Starts:      New("starts", 4096),
		Starters:    New("starters", 2), // more would start no faster, and take CPU time from the calls in progress
		Writers:     New("writers", s.Writers),

		Inputs:     New("inputs", 64),
		Lookups:    New("looks", 32),
		Calls:      NewGroup("calls", 400),
		Signals:    New("signals", 64),
		PollCopies: New("poll_copies", 32),
		Copies:     New("copies", 64),
		CopyMemory: New("copy_memory", s.CopyMemory),
		Callbacks:  New("callbacks", 256),
		Receivers:  NewGroup("receivers", 64),
	}
}

// Figures returns the figures of all limits, in the order above.
func (p *Process) Figures() []Figures {
	var list []Figures
	for _, row := range []struct {
		of     interface{ Figures() Figures }
		tenant string
	}{
		{p.Connections, "client's address"},
		{p.Overflow, "connection"},
		{p.UnknownKeys, "client's network"},
		{p.Requests, "account"},
		{p.Waits, "account"},
		{p.Speeches, "account"},
		{p.Bodies, "account"},
		{p.Parsers, "account"},
		{p.Uploads, "account"},
		{p.Quotes, "account"},
		{p.Moderation, "account"},
		{p.Starts, "account"},
		{p.Starters, "account"},
		{p.Writers, "account"},

		{p.Inputs, "account"},
		{p.Lookups, "account"},
		{p.Calls, "account, of each channel"},
		{p.Signals, "channel"},
		{p.PollCopies, "provider"},
		{p.Copies, "provider"},
		{p.CopyMemory, "provider"},
		{p.Callbacks, "account"},
		{p.Receivers, "receiver, of each account"},
	} {
		f := row.of.Figures()
		f.Tenant = row.tenant
		list = append(list, f)
	}
	return list
}
