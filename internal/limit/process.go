package limit

// Process are all limits of a process. A field that is nil has no bound.
type Process struct {
	Connections *Limit // of clients to the API; tenant: the client's address
	Spare       *Limit // connections beyond those, which are told so and may ask how we are; tenant: each by itself
	Suspects    *Limit // questions about keys, from addresses of which many have failed; tenant: the client's network
	Requests    *Limit // that have a body, under way; tenant: the account
	Waits       *Limit // long polls and event streams; tenant: the account
	Speeches    *Limit // sounds that are passed on; tenant: the account
	Bodies      *Limit // bytes of bodies in memory; tenant: the account
	Parsers     *Limit // large bodies that are parsed; tenant: the account
	Uploads     *Limit // bytes of uploads on their way to the bucket; tenant: the account
	Quotes      *Limit // questions to adapters under way; tenant: the account
	Moderation  *Limit // calls to the moderation endpoint; tenant: the account
	Starts      *Limit // runs that are to be started; tenant: the account
	Starters    *Limit // of these under way; tenant: the account
	Writers     *Limit // connections to the database of those who move money; tenant: the account

	Inputs     *Limit // clients' files that are looked at; tenant: the account
	Lookups    *Limit // attempts that look for a channel; tenant: the account
	Calls      *Group // calls that make jobs, of each channel; tenant: the account
	Signals    *Limit // runs that are told of their job's end; tenant: the channel
	PollCopies *Limit // results that pollers copy, before runs are signalled; tenant: the provider
	Copies     *Limit // results that are copied; tenant: the provider
	CopyMemory *Limit // bytes of copies in memory; tenant: the provider
	Callbacks  *Limit // attempts at callbacks; tenant: the account
	Receivers  *Group // attempts at callbacks, of each account; tenant: the receiver
}

// Sizes are what the settings and the machine say of the limits.
type Sizes struct {
	Connections  int64 // of clients
	BodyMemory   int64 // bytes
	LargestBody  int64 // bytes that one body may have
	UploadMemory int64 // bytes
	Writers      int64 // connections to the database for those who move money
	CopyMemory   int64 // bytes
}

// For makes the limits of a process.
func For(s Sizes) *Process {
	return &Process{
		Connections: New("connections", s.Connections),
		Spare:       New("spare_connections", 64),
		Suspects:    New("suspects", 2),
		Requests:    New("requests", s.Connections/4),
		Waits:       New("waits", s.Connections/2),
		Speeches:    New("speeches", 2000),
		Bodies:      New("bodies", s.BodyMemory+2*s.LargestBody),
		Parsers:     New("parsers", 2),
		Uploads:     New("uploads", s.UploadMemory),
		Quotes:      New("quotes", 16),
		Moderation:  New("moderation", 64),
		Starts:      New("starts", 4096),
		Starters:    New("starters", 2), // more start no faster, and take the cores from the calls that are answered
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

// Figures are those of all of them, in the order above.
func (p *Process) Figures() []Figures {
	var list []Figures
	for _, row := range []struct {
		of     interface{ Figures() Figures }
		tenant string
	}{
		{p.Connections, "client's address"},
		{p.Spare, "connection"},
		{p.Suspects, "client's network"},
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
