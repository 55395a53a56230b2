package limit

// Tenants is how many hold something or wait.
func (l *Limit) Tenants() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tenants)
}

// Keys is how many are in use.
func (g *Group) Keys() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.limits)
}
