package runner

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// scripts make each shell ask the program for completions. The program gets the words after its
// name, the last of them incomplete. The script for bash avoids compgen, which would run $(…).
var scripts = map[string]string{
	"bash": `_mediagate() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _mediagate mediagate
`,
	"zsh": `#compdef mediagate
_mediagate() {
  local -a candidates=(${(f)"$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a candidates || _files
}
if [[ $funcstack[1] == _mediagate ]]; then _mediagate "$@"; else compdef _mediagate mediagate; fi
`,
	"fish": `complete -c mediagate -a '(mediagate complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// wordly holds the characters of ids that mean nothing to a shell. Complete offers no other ids:
// the gateway names the models, and its answer must not become a command.
const wordly = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@+-"

// modelsTime is how long Complete waits for a gateway's models.
const modelsTime = 2 * time.Second

// Completion prints the script that completes the program's commands in a shell.
func Completion(shell string, out io.Writer) error {
	script, ok := scripts[shell]
	if !ok {
		return errUsage{"name a shell: bash, zsh or fish"}
	}
	_, err := io.WriteString(out, script)
	return err
}

// Complete prints the completions of the last word, one a line. commands has all commands, such as
// "tasks list". For run it also completes flags and, with the key of the environment, models.
func Complete(ctx context.Context, words, commands, environ []string, out io.Writer) {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	offer := func(candidate string) {
		if strings.HasPrefix(candidate, last) {
			_, _ = fmt.Fprintln(out, candidate)
		}
	}
	if len(before) == 0 || before[0] != "run" {
		offered := map[string]bool{}
		for _, command := range commands {
			parts := strings.Fields(command)
			if len(parts) <= len(before) || strings.Join(parts[:len(before)], " ") != strings.Join(before, " ") ||
				offered[parts[len(before)]] {
				continue
			}
			offered[parts[len(before)]] = true
			offer(parts[len(before)])
		}
		return
	}
	if strings.HasPrefix(last, "-") {
		(&command{}).flags().VisitAll(func(f *flag.Flag) { offer("-" + f.Name) })
		return
	}
	if len(before) > 1 {
		return
	}
	gateway, err := connect(environ, "")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, modelsTime)
	defer cancel()
	models, err := gateway.Models(ctx, "")
	if err != nil {
		return
	}
	for _, m := range models {
		if strings.Trim(m.ID, wordly) == "" {
			offer(m.ID)
		}
	}
}
