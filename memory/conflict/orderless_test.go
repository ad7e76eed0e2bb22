package conflict

import "testing"

// The same words may say the opposite in another order or voice.
func TestClassify_sameWordsOtherRoles(t *testing.T) {
	t.Parallel()
	for _, p := range [][2]string{
		{"The gateway calls the proxy.", "The gateway is called by the proxy."},
		{"Postgres uses Redis.", "Redis uses Postgres."},
		{"The gateway calls the proxy.", "The proxy calls the gateway."},
		{"Anna reports to Omar.", "Omar reports to Anna."},
		{"Staff must inform customers.", "Customers must inform staff."},
		{"The loader reads from the archive.", "The archive reads from the loader."},
		{"Only admins may delete projects.", "Admins may delete only projects."},
		{"Access without a token is forbidden.", "Access with a token is forbidden."},
		{"Jonas is headed by the data team.", "Jonas heads the data team."},
		{"Mona must approve without Ben.", "Mona must not approve without Ben."},
		{"Sessions must expire after 30 minutes.", "Sessions must expire after 30 hours."},
		{"Reviews are mandatory for the api team.", "Reviews are mandatory for the web team."},
		{"The cache Babane in Riga sends its tickets after 120 minutes.", "The cache Babaneli in Riga sends its tickets after 120 minutes."},
		{"Kobane runs the ferry.", "Kobanede runs the ferry."},
		{"You must keep logs and must not delete backups.", "You must not keep logs and must delete backups."},
		{"Admins must read logs, not mails.", "Admins must read mails, not logs."},
		{"Guests may not upload and members may edit.", "Guests may upload and members may not edit."},
		{"Tokens may be read but never written.", "Tokens may be written but never read."},
		{"Reviews must be done by the api team.", "Reviews must be done for the api team."},
		{"The api team may deploy on Monday.", "The api team must deploy on Monday."},
	} {
		v := classify(p[0], p[1])
		if v.Relation == Duplicate || v.Relation == Refinement {
			t.Errorf("%s by %s (%s)\n\told %s\n\tnew %s", v.Relation, v.Rule, v.Reason, p[0], p[1])
		}
	}
}

func TestClassify_sameInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, p := range [][2]string{
		{"Jonas heads the data team.", "The data team is headed by Jonas."},
		{"The data team is headed by Jonas.", "Jonas heads the data team."},
		{"Remote staff must use the VPN.", "The VPN is mandatory for remote staff."},
		{"Nobody may deploy during the holiday freeze.", "Deploying is forbidden during the holiday freeze."},
		{"On Mondays the wiki is rebuilt.", "The wiki is rebuilt on Mondays."},
		{"A job may use at most 4 GiB of memory.", "A job must not use more than 4 GiB of memory."},
		{"Backups run every day.", "Backups run daily."},
		{"The digest is mailed once a week.", "The digest is mailed weekly."},
		{"Tokens live for an hour.", "Tokens live for 60 minutes."},
		{"По вторникам выходит сборка.", "Сборка выходит по вторникам."},
		{"会议每周三下午四点开始。", "会议每星期三16:00开始。"},
		{"棚卸しは週に一度行う。", "棚卸しは毎週行う。"},
	} {
		check(t, Duplicate, p[0], p[1])
	}
}
