package activitytest

import (
	"context"
	"slices"

	"github.com/mediagate/mediagate"
	"github.com/mediagate/mediagate/channel"
)

// ProveAccount keeps a proof, once.
func (s *Store) ProveAccount(ctx context.Context, p mediagate.AccountProof) (bool, error) {
	unlock, err := s.lock(ctx, "ProveAccount")
	defer unlock()
	if err != nil {
		return false, err
	}
	for _, known := range s.proofs {
		if known.Made == p.Made && known.Found == p.Found {
			return false, nil
		}
	}
	s.proofs = append(s.proofs, p)
	return true, nil
}

// SameAccount follows the proofs from a fingerprint.
func (s *Store) SameAccount(ctx context.Context, fingerprint string) ([]string, error) {
	unlock, err := s.lock(ctx, "SameAccount")
	defer unlock()
	if err != nil {
		return nil, err
	}
	same := []string{fingerprint}
	for i := 0; i < len(same); i++ {
		for _, p := range s.proofs {
			for from, to := range map[string]string{p.Made: p.Found, p.Found: p.Made} {
				if from == same[i] && !slices.Contains(same, to) {
					same = append(same, to)
				}
			}
		}
	}
	slices.Sort(same)
	return same, nil
}

// AwaitAccounts lists the fingerprints of a channel's rows.
func (s *Store) AwaitAccounts(ctx context.Context, channel string) ([]string, error) {
	unlock, err := s.lock(ctx, "AwaitAccounts")
	defer unlock()
	if err != nil {
		return nil, err
	}
	waiting := make(map[string]bool)
	for _, w := range s.awaits {
		if w.Channel == channel {
			waiting[w.Fingerprint] = true
		}
	}
	return names(waiting), nil
}

// Proofs are those on record.
func (s *Store) Proofs() []mediagate.AccountProof {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.proofs)
}

// Renewed is the asynchronous channel with a new key of the same account, of
// which only the vendor knows.
func (w *World) Renewed() channel.Channel {
	c := w.AsyncBound()
	c.Fingerprint = "account-a, new key"
	return c
}

// Stranger is the asynchronous channel with the key of another account, whose
// vendor knows none of our jobs.
func (w *World) Stranger() (channel.Channel, *Vendor) {
	other := &Vendor{}
	c := w.AsyncBound()
	c.Fingerprint, c.Vendor = "account-b", other.Finding()
	return c, other
}
