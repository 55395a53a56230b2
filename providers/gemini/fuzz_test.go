package gemini_test

import (
	"testing"

	"github.com/mediagate/mediagate/providers/providertest"
)

func FuzzDecode(f *testing.F) { providertest.Fuzz(f, suite()) }
