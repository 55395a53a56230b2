// Package api is the gateway's HTTP face: one table of routes, the handlers,
// and the rendering of errors into the envelope of each route.
//
// It owns the surface and nothing else: rules on models are the catalog's, how
// a task is shown is the view's, money and tasks are the store's, and what
// happens to a task after its acknowledgement is the workflows'. It reads and
// writes rows through the small interfaces declared in store.go, never calls a
// vendor, and keeps no state that another process would have to know: cached
// keys live for less than a second.
//
// It must not import storage, activities, workers or providers; GORM and
// vendor code are unknown here.
package api
