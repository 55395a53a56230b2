// Package moderation judges what clients write for vendors before money is
// held for it: by lists of words and patterns, or by asking an endpoint that
// speaks the moderation protocol of OpenAI.
//
// It owns the lists' format, the form in which texts are compared with them,
// and the call to the endpoint. What it learns leaves it as a Refusal: the rule
// and a hash, never a text, which also no error of it holds.
//
// Texts and entries are compared in one form (see read): compatibility forms,
// width, case, accents and characters that do not show are as good as not
// there. Tag characters, which do not show either, are read as the letters that
// they stand for, too. Letters that look like Latin ones count as these, unless the word is
// one of their own script. Spelling with digits is not undone.
//
// The package imports the root package and outbound only. It knows nothing of
// accounts, requests or models.
package moderation
