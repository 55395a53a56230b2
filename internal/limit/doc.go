// Package limit bounds how much of a scarce resource the tenants of a process hold at once:
// connections, bytes of bodies, calls, open files. Without it the tasks of one account would wait
// behind another account's without an end, and a burst from one account would keep out everybody
// else's submits (ADR 11). [For] makes all limits of a process.
//
// A tenant may hold at most as much as is then still free for all (dynamic thresholds: Choudhury
// and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998). A single
// tenant gets a half, two get a third each, and each of k tenants gets one part of k+1. So one such
// part is always free for a newcomer. Nothing that is held is taken back. A tenant that holds
// nothing may have what it asks for as soon as that is free.
//
// Example: a limit of 30 lets a single tenant hold 15. A second tenant gets 7 of the free 15 at once.
// As the first one's permits end, both settle at 10, with 10 free.
//
// Waiters are served in round robin, one of each tenant in turn, and those of a tenant first
// come, first served. A tenant that waits for its share to grow lets others go first. A tenant
// that holds nothing and asks for more than is free blocks later ones: otherwise small requests
// would keep a large one out forever.
//
// An announced amount, such as the length of a body, counts only as it arrives: the [Permit] grows
// with it. A sender slower than a [Pace] is cut off.
//
// The package imports nothing of this module.
package limit
