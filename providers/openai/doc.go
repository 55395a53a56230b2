// Package openai is the adapter of OpenAI's text-to-speech API. The API has one call, which streams
// the sound while it is made.
//
// The package decides how to write a request for the vendor and what the vendor's errors mean. A
// 429 does not always ask for fewer calls: insufficient_quota means that our account is out of
// money, so waiting does not help. The vendor stores no jobs, so there is nothing to poll.
package openai
