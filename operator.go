package mediagate

import "slices"

// OperatorRole says what an operator may do. Each role includes the ones before it. The routes of
// the admin API name the role that each call needs (api/routes.go).
type OperatorRole string

// The roles of operators.
const (
	RoleRead    OperatorRole = "read"    // sees everything but prompts and secrets
	RoleOperate OperatorRole = "operate" // also reads prompts, gives commands for tasks, and switches channels
	RoleAdmin   OperatorRole = "admin"   // also changes money, accounts and keys
)

// OperatorRoles lists the roles from the least to the most.
func OperatorRoles() []OperatorRole { return []OperatorRole{RoleRead, RoleOperate, RoleAdmin} }

// Includes reports whether the role may do what needs the other role. It is false if either role
// is unknown.
func (r OperatorRole) Includes(needed OperatorRole) bool {
	rank := slices.Index(OperatorRoles(), needed)
	return rank >= 0 && slices.Index(OperatorRoles(), r) >= rank
}

// AdminOperator is the name of the operator with the admin key.
const AdminOperator = "admin"
