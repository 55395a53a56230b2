package media

import (
	"fmt"
	"strconv"

	"github.com/mediagate/mediagate"
)

// flaw says what is wrong with a client's file, in words that follow the field's name. The file is
// unusable for every model, or it breaks a bound of this model's contract.
type flaw struct {
	unusable bool
	words    string
}

// of returns the error of the client's file in that field.
func (f flaw) of(field string) error {
	code := mediagate.CodeInvalidParameters
	if f.unusable {
		code = mediagate.CodeImageProcessing
	}
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(code), Param: field, Message: field + " " + f.words,
	}
}

func tooManyBytes(most int64) *flaw {
	return &flaw{words: "has more than " + strconv.FormatInt(most, 10) + " bytes, the most that are allowed"}
}

// Unusable returns the error of a client's file that no model can use. The words follow the field's
// name.
func Unusable(field, words string) error { return flaw{unusable: true, words: words}.of(field) }

// NotOpened returns the client's error for an address that could not be opened: KindInvalid for one
// that is refused or leads nowhere, KindTransient while its server does not answer.
func NotOpened(field string, err error) error {
	e := &mediagate.Error{Kind: mediagate.KindInvalid, Code: string(mediagate.CodeImageProcessing), Param: field, Err: err}
	switch mediagate.KindOf(err) {
	case mediagate.KindInvalid:
		e.Message = field + " has an address that is not allowed, or leads to one"
	case mediagate.KindGone:
		e.Message = field + " cannot be fetched from its address"
	default:
		return serverAway(field, err)
	}
	return e
}

func serverAway(field string, err error) error {
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Param: field, Message: field + " cannot be fetched: its server does not answer",
		Err: err,
	}
}

func brokeOff(field string, err error) error {
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Param: field, Message: field + " broke off while it was fetched", Err: err,
	}
}

// BrokenOff returns the error of a vendor's file that ended early: KindTransient with code
// result_unavailable.
func BrokenOff(err error) error {
	return &mediagate.Error{
		Kind: mediagate.KindTransient, Code: string(mediagate.CodeResultUnavailable),
		Message: "the provider's file broke off", Err: err,
	}
}

// Useless returns the error of a vendor's file that the task cannot use: KindInvalid with code
// result_unavailable.
func Useless(format string, args ...any) error {
	return &mediagate.Error{
		Kind: mediagate.KindInvalid, Code: string(mediagate.CodeResultUnavailable), Message: fmt.Sprintf(format, args...),
	}
}
