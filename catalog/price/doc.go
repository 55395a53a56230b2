// Package price is the arithmetic of prices: the sum of charges, the part that is due for what
// was delivered, and how a group's price factor changes a unit price.
//
// It is pure: integers in, integers out, no clock and no storage. The catalog decides which
// prices apply to a request, and the ledger moves the money. The package may import the module
// root only.
package price
