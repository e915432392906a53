package board

// Exec turns a request into a transaction or a refusal. It is pure: see the
// package comment. An empty Txn writes nothing.
func Exec(v View, req *Request, env *Env) (Txn, Result) {
	return Txn{}, Result{Seq: v.Seq(), Err: Errorf(Internal, "not there yet")}
}
