package minimax_test

import (
	"testing"

	"github.com/mediagate/mediagate/providers/providertest"
)

func FuzzDecodeFirst(f *testing.F) { providertest.Fuzz(f, firstSuite()) }

func FuzzDecodeSecond(f *testing.F) { providertest.Fuzz(f, secondSuite()) }
