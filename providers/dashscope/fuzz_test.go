package dashscope_test

import (
	"testing"

	"github.com/mediagate/mediagate/providers/providertest"
)

func FuzzDecodeImage(f *testing.F) { providertest.Fuzz(f, suite()) }

func FuzzDecodeVideo(f *testing.F) { providertest.Fuzz(f, videoSuite()) }
