package planner

import "github.com/gccl/gccl/algo/plan"

// Direct is the family of all-pairs methods over memory that every rank can load and store: step 1 says that a
// rank's data is there, step 2 that it has finished with the others' memory.
//
// Two facts make scratch safe over rounds. Stage is written again only after step 2 of all its readers was
// waited for. Out is written again only after step 1 of the next round of all ranks was waited for, which
// they reach after they have collected.
const Direct = "direct"

// stageOthers copies all parts of the send buffer that other ranks read to where they can reach them.
func (e ends) stageOthers() []plan.Op {
	part := e.from(e.rank + 1)
	return when(plan.SendStaged, loop(e.n-1, move(e.mine(plan.Send, part), e.mine(plan.Stage, part))))
}

// stageWhole is stageOthers for a send buffer of one part.
func (e ends) stageWhole() []plan.Op {
	if e.n == 1 {
		return nil
	}
	part := plan.Const(0)
	return when(plan.SendStaged, do(move(e.mine(plan.Send, part), e.mine(plan.Stage, part))))
}

// collect fetches what other ranks could not store here: rank q computed part q.
func (e ends) collect() []plan.Op {
	peer := e.from(e.rank + 1)
	return when(plan.RecvStaged, loop(e.n-1, move(at(plan.Out, peer, plan.Const(0)), e.mine(plan.Recv, peer))))
}

// allReady is step 1: everybody's data is there, and everybody's record is known.
func allReady() []plan.Op { return do(signal(1), waitAll(1)) }

// allDone is step 2: nobody uses anybody's memory any more.
func allDone() []plan.Op { return do(signal(2), waitAll(2)) }
