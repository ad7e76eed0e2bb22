package endtoend
import ("testing";"time")
func TestZZ(t *testing.T){
	p := start(t, t.TempDir(), "--log-level","warn")
	b:=time.Now()
	r,err:=p.client().CaptureMeetingDecisions(timed(t), meeting("board","b7",1000))
	t.Log(time.Since(b), r.Added, len(r.FactIDs), err)
	if err!=nil { t.Fatal(err)}
	t.Log(rows(t,p.folder("board"),"SELECT key, kind FROM operations"))
}
