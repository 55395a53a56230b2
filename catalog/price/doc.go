// Package price is the arithmetic of prices: what a set of charges adds up
// to, what of it is due for what was delivered, and how a group's price
// factor changes a unit price.
//
// It is pure: integers in, integers out, no clock and no storage. Which
// prices apply to a request is the catalog's business, and moving money is
// the ledger's. It may import the module root only.
package price
