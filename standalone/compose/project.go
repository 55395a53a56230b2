package compose

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// Load reads the docker-compose.yml of the folder as docker compose does. The variables of env
// replace those of the shell.
func Load(ctx context.Context, folder string, env []string) (*types.Project, error) {
	options, err := cli.NewProjectOptions(
		[]string{filepath.Join(folder, "docker-compose.yml")},
		cli.WithWorkingDirectory(folder),
		cli.WithEnv(env),
		cli.WithInterpolation(true),
		cli.WithConsistency(true),
	)
	if err != nil {
		return nil, fmt.Errorf("compose options: %w", err)
	}
	return options.LoadProject(ctx)
}
