package mediagate

import (
	"context"
	"encoding/json"
	"time"
)

// Actor is who makes a change that is looked up later.
type Actor struct {
	By        string // ByOperator, or the id of a key
	Address   string // the client's; empty where it cannot be known
	RequestID string
}

// ByOperator is whoever has the admin key.
const ByOperator = "operator"

type actorKey struct{}

// WithActor says who makes the changes that are asked for with the context. It
// decides nothing: who may make them is decided before, and the store only notes
// it beside the change. Without an actor the gateway itself is at work, and
// nothing is noted.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is the actor of the context, if there is one.
func ActorOf(ctx context.Context) (Actor, bool) {
	a, ok := ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// AuditAction is what was done.
type AuditAction string

// What is noted in the audit.
const (
	AuditCreateAccount       AuditAction = "create_account"
	AuditChangeAccount       AuditAction = "change_account"
	AuditGrant               AuditAction = "grant"
	AuditCreateKey           AuditAction = "create_key"
	AuditChangeKey           AuditAction = "change_key"
	AuditRotateKey           AuditAction = "rotate_key"
	AuditDeleteKey           AuditAction = "delete_key"
	AuditRotateWebhookSecret AuditAction = "rotate_webhook_secret" //nolint:gosec // the name of a deed, and no secret
	AuditChangeChannel       AuditAction = "change_channel"
	AuditTaskAction          AuditAction = "task_action"
	AuditReadPrompt          AuditAction = "read_prompt"
	AuditTaskJob             AuditAction = "task_job"
	AuditRecover             AuditAction = "recover"
)

// AuditEntry is a change that was made: who did what when. It holds no secret.
type AuditEntry struct {
	ID        string
	At        time.Time
	Actor     Actor
	Action    AuditAction
	Object    string          // the id of what was changed, or a channel's name
	AccountID string          // whose it is; empty for channels
	Before    json.RawMessage // the fields that changed, as they were; nil for what was not there
	After     json.RawMessage // the same, as they became; nil for what is there no more
}
