// Package moderation checks what clients write for vendors before money is held for it: against
// lists of words and patterns, or by an endpoint that speaks OpenAI's moderation protocol.
//
// It owns the format of the lists, the form in which texts are compared with them, and the call
// to the endpoint. A verdict names the rule and a hash of the text. The text itself appears in no
// verdict and in no error.
//
// Texts and entries are compared in one form (see read). Compatibility forms, width, case, accents
// and invisible characters make no difference. Tag characters, which are invisible too, are also
// read as the letters that they stand for. Letters of other scripts that look like Latin letters
// count as those, unless their word belongs to their own script. Digits in place of letters are not
// undone.
//
// The package imports the root package and outbound only. It knows nothing of accounts, requests
// or models.
package moderation
