// Package openai speaks to OpenAI's API as far as it turns text into speech:
// one call, whose answer is the sound while it is made.
//
// It decides how a request is put into the vendor's words and what the vendor's
// errors mean. A 429 is not always one: insufficient_quota says that our account
// is out of money, which waiting does not mend. Nothing is kept there that could
// be asked for later.
package openai
