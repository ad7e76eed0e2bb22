package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/polyphony-memory/polyphony/memory/record"
)

func (a *app) proposePolicy() *cobra.Command {
	var in record.ProposePolicy
	c := &cobra.Command{
		Use: "propose-policy --domain D --rule R", Short: "Add a rule that every agent gets at dispatch", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := need(cmd, "domain", "rule"); err != nil {
				return err
			}
			in.Caller = a.caller
			if err := second(record.ParseRole("required_role", in.RequiredRole)); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.PolicyResult, error) { return b.ProposePolicy(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				if out.Status == "exists" {
					o.line("%s policy %s in %s says the same", o.bold("Known:"), out.PolicyID, oneLine(out.Domain))
					return
				}
				o.line("%s policy %s in %s", o.bold("Created"), out.PolicyID, oneLine(out.Domain))
			})
		},
	}
	c.Flags().StringVar(&in.Domain, "domain", "", "domain, like security or repo:<slug>/security")
	c.Flags().StringVar(&in.Rule, "rule", "", "what agents should do")
	c.Flags().StringVar(&in.RequiredRole, "required-role", "", "the role it is meant for; advice, shown after the rule")
	return c
}

func (a *app) supersedePolicy() *cobra.Command {
	var in record.SupersedePolicy
	c := &cobra.Command{
		Use: "supersede-policy ID", Short: "Retire a policy, with or without a new rule in its place", Args: positional("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Caller, in.PolicyID = a.caller, args[0]
			if cmd.Flags().Changed("rule") && in.Rule == "" {
				return record.Errorf(record.ContentEmpty, "rule", "the new rule is empty; leave --rule out to retire the policy without one")
			}
			if in.RequiredRole != "" && in.Rule == "" {
				return usage("required_role", "--required-role belongs to a new rule; give --rule")
			}
			if err := second(record.ParseRole("required_role", in.RequiredRole)); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.PolicyResult, error) { return b.SupersedePolicy(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s policy %s in %s", o.bold("Superseded"), out.PolicyID, oneLine(out.Domain))
				o.pairs([2]string{"by", out.ReplacementID})
			})
		},
	}
	c.Flags().StringVar(&in.Rule, "rule", "", "the rule that takes its place")
	c.Flags().StringVar(&in.RequiredRole, "required-role", "", "the role the new rule is meant for")
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the record")
	return c
}

func (a *app) policies() *cobra.Command {
	in := record.ReadMemory{What: record.ReadPolicies}
	c := &cobra.Command{
		Use: "policies", Short: "List policies", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Policy](cmd.Context(), a, in)
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"policies": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No policies%s yet.", within(in.Domain))
					return
				}
				table := make([][]string, len(all))
				for i, p := range all {
					rule := p.Rule
					if p.RequiredRole != "" {
						rule += " (for role " + string(p.RequiredRole) + ")"
					}
					if !p.SupersededAt.IsZero() {
						rule = "[superseded] " + rule
					}
					table[i] = []string{p.ID, oneLine(p.Domain), brief(rule)}
				}
				o.table([]string{"ID", "DOMAIN", "RULE"}, table)
			})
		},
	}
	c.Flags().StringVar(&in.Domain, "domain", "", "only this domain")
	c.Flags().BoolVar(&in.All, "all", false, "superseded ones too")
	return c
}

func (a *app) domains() *cobra.Command {
	return &cobra.Command{
		Use: "domains", Short: "List domains with their counts", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Domain](cmd.Context(), a, record.ReadMemory{What: record.ReadDomains})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"domains": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No domains yet.")
					return
				}
				table := make([][]string, len(all))
				for i, d := range all {
					table[i] = []string{oneLine(d.Name), or(oneLine(d.Repo), "-"), strconv.FormatInt(d.Facts, 10), strconv.FormatInt(d.Policies, 10), moment(d.CreatedAt)}
				}
				o.table([]string{"DOMAIN", "REPO", "FACTS", "POLICIES", "SINCE"}, table)
			})
		},
	}
}

func (a *app) grants() *cobra.Command {
	return group("grants", "What roles may do in domains", a.grantsList(), a.grantsSet())
}

func (a *app) grantsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List grants; a role without one in a domain may read", Args: positional(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := rows[record.Grant](cmd.Context(), a, record.ReadMemory{What: record.ReadGrants})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"grants": all}, func(o *output) {
				if len(all) == 0 {
					o.line("No grants yet; every role may read.")
					return
				}
				table := make([][]string, len(all))
				for i, g := range all {
					table[i] = []string{oneLine(g.Domain), string(g.Role), string(g.Level), moment(g.UpdatedAt), or(oneLine(g.UpdatedBy), "-")}
				}
				o.table([]string{"DOMAIN", "ROLE", "LEVEL", "SINCE", "BY"}, table)
			})
		},
	}
}

func (a *app) grantsSet() *cobra.Command {
	var in record.SetGrant
	c := &cobra.Command{
		Use: "set --for-role R --domain D none|read|write", Short: "Give a role a level in a domain", Args: positional("LEVEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need(cmd, "for-role", "domain"); err != nil {
				return err
			}
			in.Caller, in.Level = a.caller, args[0]
			if in.ForRole == "" {
				return usage("for_role", "name the role that the grant is for")
			}
			if err := firstError(second(record.ParseRole("for_role", in.ForRole)), second(record.ParseLevel(in.Level))); err != nil {
				return err
			}
			out, err := call(cmd.Context(), a, func(ctx context.Context, b backend) (record.SetGrantResult, error) { return b.SetGrant(ctx, in) })
			if err != nil {
				return err
			}
			return a.emit(out, func(o *output) {
				o.line("%s role %s has %s on %s", o.bold("Set:"), out.Grant.Role, out.Grant.Level, oneLine(out.Grant.Domain))
			})
		},
	}
	c.Flags().StringVar(&in.ForRole, "for-role", "", "the role that the grant is for")
	c.Flags().StringVar(&in.Domain, "domain", "", "the domain")
	return c
}
