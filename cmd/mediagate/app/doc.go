// Package app wires the program: it reads the settings, opens what they name, and runs the API and
// the worker. The production program and the standalone one share it. They differ in their settings
// and in how they open the database.
//
// It imports everything that it puts together. Only main packages and end-to-end tests import it.
package app
