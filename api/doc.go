// Package api is the gateway's HTTP API: one table of routes, the handlers, and the rendering of
// errors into each route's envelope.
//
// It owns the surface and nothing else. Package catalog holds the rules on models, task/view
// decides how a task is shown, storage keeps money and tasks, and the workflows carry an
// acknowledged task to its end. Package api reads and writes rows through the small interfaces in
// store.go and never calls a vendor, except to stream speech. It keeps no state that another
// process would have to know: it caches keys and sessions for less than a second.
//
// It must not import storage, activities, worker or providers, and it knows neither GORM nor any
// vendor's code.
package api
