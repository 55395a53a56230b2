// Package limit bounds what the tenants of a process hold at once of something that is
// scarce: connections, bytes of bodies, calls, files under way. Without it the tasks of
// one account wait for another's without an end, and a crowd of one keeps everybody
// else's submits out (ADR 11). All limits of a process are made by [For].
//
// A tenant may hold as much as is free beside what all hold (dynamic thresholds: Choudhury
// and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998).
// So one that is alone gets a half, two get a third each, of k each gets one part of k+1,
// and one such part is always left for who comes next. Nothing that is held is taken
// back. A tenant that holds nothing may have what it asks for as soon as that is free.
//
// Those who wait are served in turns, one of each tenant, and those of a tenant in the
// order in which they came. Who waits for its share to grow lets others go before. Who
// holds nothing and asks for more than is free is waited for, or small requests would
// keep a large one out.
//
// What is announced counts only as it arrives: a [Permit] grows. Who sends slower than a
// [Pace] is let go.
//
// It imports nothing of this module.
package limit
