package view

import "github.com/mediagate/mediagate"

// Result holds the lists that the task's type fills.
type Result struct {
	Images []Item `json:"images,omitempty"`
	Videos []Item `json:"videos,omitempty"`
	Audios []Item `json:"audios,omitzero"` // for each music task; empty if it made a voice
	Music  []Clip `json:"music,omitempty"` // for music tasks, in addition to the audios

	Descriptions []string `json:"descriptions,omitempty"` // of a picture
}

// Item is one delivered file.
type Item struct {
	URL          []string `json:"url"`        // empty once the file is not kept any more
	ExpiresAt    int64    `json:"expires_at"` // when the link stops working, or did
	Width        int      `json:"width,omitempty"`
	Height       int      `json:"height,omitempty"`
	Duration     float64  `json:"duration,omitempty"`
	SizeBytes    int64    `json:"size_bytes,omitempty"`
	MimeType     string   `json:"mime_type,omitempty"`
	ThumbnailURL string   `json:"thumbnail_url,omitempty"`
}

// file is a result with its link. The link's URL is empty if there is no link.
type file struct {
	mediagate.Result
	link mediagate.Link
}

// filesOf returns the task's files of a role, in their order.
func filesOf(t *mediagate.Task, role mediagate.Role, links []mediagate.Link) []file {
	files := make([]file, 0, len(t.Results))
	for i, r := range t.Results {
		if r.Role != role {
			continue
		}
		f := file{Result: r}
		if i < len(links) {
			f.link = links[i]
		}
		files = append(files, f)
	}
	return files
}

// deliveredOf returns the files that count as results, in the order in which answers list them. If
// four pictures came as one grid, the grid comes first and the four follow.
func deliveredOf(t *mediagate.Task, links []mediagate.Link) []file {
	return append(filesOf(t, mediagate.RoleGrid, links), filesOf(t, mediagate.RoleMain, links)...)
}

// resultOf lists what was delivered. The cover of a file becomes its thumbnail.
func resultOf(t *mediagate.Task, links []mediagate.Link) *Result {
	covers := map[int]string{}
	for _, cover := range filesOf(t, mediagate.RoleCover, links) {
		covers[cover.Index] = cover.link.URL
	}
	files := deliveredOf(t, links)
	items := make([]Item, 0, len(files))
	for _, f := range files {
		item := Item{
			URL: []string{}, Width: f.Width, Height: f.Height,
			Duration: mediagate.ShownSeconds(f.Duration), SizeBytes: f.Size, MimeType: f.MimeType, ThumbnailURL: covers[f.Index],
		}
		if f.link.URL != "" {
			item.URL = []string{f.link.URL}
		}
		if !f.link.ExpiresAt.IsZero() {
			item.ExpiresAt = f.link.ExpiresAt.Unix()
		}
		items = append(items, item)
	}
	facts, _ := t.Type.Facts()
	switch facts.List {
	case mediagate.ListVideos:
		return &Result{Videos: items}
	case mediagate.ListAudios:
		return &Result{Audios: items, Music: clipsOf(t, links)}
	default:
		r := &Result{Images: items}
		if t.Made != nil {
			r.Descriptions = t.Made.Descriptions
		}
		return r
	}
}
