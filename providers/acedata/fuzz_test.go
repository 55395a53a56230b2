package acedata_test

import (
	"testing"

	"github.com/mediagate/mediagate/providers/providertest"
)

func FuzzDecodeSong(f *testing.F) { providertest.Fuzz(f, suiteOf("song")) }

func FuzzDecodeProducer(f *testing.F) { providertest.Fuzz(f, suiteOf("flow_song")) }
