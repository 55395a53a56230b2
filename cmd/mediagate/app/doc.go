// Package app is the wiring: it reads the settings, opens what they name, and
// runs the API and the worker over it. The production program and the
// standalone one share it; they differ in settings and in who opens the
// database.
//
// It imports whatever it puts together, and nothing imports it but main
// packages and end-to-end tests.
package app
