package catalog

// WithEndpoints replaces the table of endpoints.
func WithEndpoints(rows ...Endpoint) Option {
	return func(l *loader) { l.endpoints = rows }
}
