package webhook

// Kept is how many who wait and how many lines are kept.
func (p *Places) Kept() (waiting, lines int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting, len(p.lines)
}
