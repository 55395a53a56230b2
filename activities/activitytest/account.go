package activitytest

import (
	"context"
	"slices"

	"github.com/mediagate/mediagate"
)

// ProveAccount keeps a proof, once.
func (s *Store) ProveAccount(ctx context.Context, p mediagate.AccountProof) (bool, error) {
	return under(ctx, s, "ProveAccount", func() (bool, error) {
		if slices.ContainsFunc(s.proofs, func(known mediagate.AccountProof) bool { return known.Made == p.Made && known.Found == p.Found }) {
			return false, nil
		}
		s.proofs = append(s.proofs, p)
		return true, nil
	})
}

// SameAccount follows the proofs from a fingerprint.
func (s *Store) SameAccount(ctx context.Context, fingerprint string) ([]string, error) {
	return under(ctx, s, "SameAccount", func() ([]string, error) {
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
	})
}

// TakeFetched counts bytes while there are as many of Fetches: all of those where bytes
// are more.
func (s *Store) TakeFetched(ctx context.Context, accountID string, bytes int64) (taken int64, ok bool, err error) {
	ok, err = under(ctx, s, "TakeFetched", func() (bool, error) {
		if taken = bytes; s.Fetches > 0 {
			taken = min(bytes, s.Fetches)
		}
		if s.Fetches > 0 && s.fetched[accountID]+taken > s.Fetches {
			return false, nil
		}
		s.fetched[accountID] += taken
		return true, nil
	})
	return taken, ok, err
}

// Fetched are the bytes that were taken for the account.
func (s *Store) Fetched(accountID string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched[accountID]
}

// Proofs are those on record.
func (s *Store) Proofs() []mediagate.AccountProof {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.proofs)
}
