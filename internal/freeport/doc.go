// Package freeport takes TCP ports from the system for servers that must be
// told a number and cannot be given a listener.
//
// A port that was taken is held: a socket is bound to it that never listens.
// The system gives the number to nobody else then, neither to a listener that
// takes any port nor to an outgoing connection, yet a server of ours, in this
// process or another, listens on it by its number, and again after a restart.
// Only a program that asks for that very number gets in between; then Listen's
// error says so (Taken), and whoever had the choice tries another one.
//
// It is for the standalone program and for tests, and imports nothing of the
// project.
package freeport
