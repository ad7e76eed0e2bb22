package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
	"github.com/polyphony-memory/polyphony/workflows/locate"
	"github.com/polyphony-memory/polyphony/workflows/seal"
)

func (a *app) keys() *cobra.Command {
	var file string
	c := group("key", "Keys that seal what the engine stores",
		a.keyRotate(&file), a.keyList(&file), a.keyReader(&file), a.keyRemove(&file))
	c.PersistentFlags().StringVar(&file, "key-file", "", "the key file (default: $"+locate.EnvKeyFile+", else keys.json in the data folder)")
	return c
}

// keyFile is the ring of the key file, which needs neither a worker nor, yet, a
// file.
func (a *app) keyFile(flag string) (*seal.Ring, error) {
	folder, err := locate.DataFolder(a.data, a.lookup)
	if err != nil {
		return nil, err
	}
	path, _ := locate.KeyFile(flag, folder, a.lookup)
	return seal.Edit(path, a.clock.now), nil
}

func (a *app) keyRotate(file *string) *cobra.Command {
	var after time.Duration
	c := &cobra.Command{
		Use: "rotate", Short: "Add a key, which seals from now on; the first makes the file",
		Long: "rotate adds a key to the key file, and makes the file when there is none. The newest key seals, all of them open.\n" +
			"Where the file is copied to other machines, --after leaves time to copy it before anything is sealed with the new key.\n" +
			"A running worker sees a new key by itself; one that was started without a key file is started again.",
		Example: `  starter key rotate --after 1h`,
		Args:    positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.keyFile(*file)
			if err != nil {
				return err
			}
			key, err := r.Rotate(cmd.Context(), after)
			if err != nil {
				return err
			}
			return a.emit(key, func(o *output) { o.line("Key %s seals from %s on.", key.ID, moment(key.From)) })
		},
	}
	c.Flags().DurationVar(&after, "after", 0, "how long the key waits before it seals, like 1h")
	return c
}

func (a *app) keyList(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List keys and readers, without their secrets", Args: positional(),
		RunE: func(*cobra.Command, []string) error {
			r, err := a.keyFile(*file)
			if err != nil {
				return err
			}
			keys, readers, err := r.List()
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"keys": keys, "readers": readers}, func(o *output) {
				if len(keys) == 0 {
					o.line("No keys: what the engine stores is not sealed.")
					return
				}
				var table [][]string
				for _, k := range keys {
					table = append(table, []string{k.ID, "key", moment(k.From)})
				}
				for _, reader := range readers {
					table = append(table, []string{reader.ID, "reader", moment(reader.CreatedAt)})
				}
				o.table([]string{"ID", "KIND", "SINCE"}, table)
			})
		},
	}
}

func (a *app) keyReader(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "reader", Short: "Make a token with which the Web UI may show sealed payloads",
		Long: "reader makes a token for the worker's codec endpoint and prints it once. Whoever shows it can read the calls of\n" +
			"every workspace, whatever their role.",
		Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.keyFile(*file)
			if err != nil {
				return err
			}
			token, reader, err := r.AddReader(cmd.Context())
			if err != nil {
				return err
			}
			return a.emit(struct {
				seal.Reader
				Token string `json:"token"`
			}{reader, token}, func(o *output) {
				o.line("%s", token)
				a.note("Reader %s. The token is shown this once.", reader.ID)
			})
		},
	}
}

func (a *app) keyRemove(file *string) *cobra.Command {
	var sure bool
	c := &cobra.Command{
		Use: "remove ID", Short: "Remove a key or a reader",
		Long: "remove takes a reader or a key out of the file. What was sealed with a removed key can never be opened again:\n" +
			"remove a key only once the engine has forgotten the runs of its time, which it keeps for 30 days, and no older run is open.",
		Args: positional("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.keyFile(*file)
			if err != nil {
				return err
			}
			keys, _, err := r.List()
			if err != nil {
				return err
			}
			for _, k := range keys {
				if k.ID == args[0] && !sure {
					return record.Errorf(record.InvalidArgument, "lose", "what key %s sealed can never be opened again; say --lose to remove it", k.ID)
				}
			}
			if err := r.Remove(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.emit(map[string]string{"removed": args[0]}, func(o *output) { o.line("Removed %s.", args[0]) })
		},
	}
	c.Flags().BoolVar(&sure, "lose", false, "remove a key, and lose what it sealed")
	return c
}
