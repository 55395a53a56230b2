package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/mediagate/mediagate/api"
	"github.com/mediagate/mediagate/internal/moderation"
	"github.com/mediagate/mediagate/internal/outbound"
)

// moderation validates the settings of moderation, and reads the lists as the start does.
func (v *validator) moderation(m Moderation) {
	v.check(slices.Contains([]string{moderationOff, moderationWords, moderationEndpoint}, m.Mode),
		"moderation.mode", "must be %s, %s or %s", moderationOff, moderationWords, moderationEndpoint)
	v.check(
		slices.Contains([]string{failClosed, failOpen}, m.OnFailure), "moderation.on_failure", "must be %s or %s", failClosed,
		failOpen,
	)
	const most = api.ModerationTime - time.Second // the second is for getting a permit
	v.check(m.Timeout <= most, "moderation.timeout", "must be at most %s", most)
	v.address("moderation.url", m.URL, wholeAddress)
	switch m.Mode {
	case moderationWords:
		if len(m.Files) == 0 {
			v.add("moderation.files", "must name at least one list: mode is words")
			return
		}
		_, problems := loadLists(m.Files)
		for _, problem := range problems {
			v.add("moderation.files", problem)
		}
	case moderationEndpoint:
		if m.URL == "" {
			v.add("moderation.url", "must be the endpoint's address: mode is endpoint")
		}
	}
}

// loadLists reads the lists, and returns all problems with path and line.
func loadLists(files []string) (*moderation.Lists, []string) {
	lists, err := moderation.Load(files)
	var problems []string
	for _, problem := range leaves(err) {
		problems = append(problems, problem.Error())
	}
	return lists, problems
}

// openModeration makes the configured moderator, or none for mode off.
func (g *Gateway) openModeration() error {
	m := g.Config.Moderation
	switch m.Mode {
	case moderationWords:
		g.lists = &reloader[*moderation.Lists]{
			setting: "moderation.files", log: g.log, size: (*moderation.Lists).Len,
			state: func() string { return filesState(m.Files, moderation.ReadFile) },
			load:  func() (*moderation.Lists, []string) { return loadLists(m.Files) },
		}
		lists, problems := g.lists.first()
		if len(problems) > 0 {
			return fmt.Errorf("moderation.files: %s", problems)
		}
		words := moderation.NewWords(lists)
		g.lists.use = func(l *moderation.Lists) error {
			words.Replace(l)
			return nil
		}
		g.moderator = words
	case moderationEndpoint:
		endpoint, err := moderation.NewEndpoint(moderation.EndpointConfig{
			URL: m.URL, Key: m.APIKey, Model: m.Model, Timeout: m.Timeout, Open: m.OnFailure == failOpen,
			Rules: g.rules, Version: g.opts.Version, Logger: g.log,
		})
		if err != nil {
			return fmt.Errorf("moderation.url: %s", outbound.Describe(err))
		}
		g.moderator, g.closeModeration = endpoint, endpoint.Close
	}
	return nil
}
