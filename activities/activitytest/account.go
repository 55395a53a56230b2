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

// Proofs are those on record.
func (s *Store) Proofs() []mediagate.AccountProof {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.proofs)
}
