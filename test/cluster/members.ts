/** Changes of the voters of a cluster of real processes, as its nodes tell of them, and what a node serves after one. */
import { eventually, type TestNode } from './harness.ts'
import { contentsAt, type Ledger } from './ledger.ts'

export interface MembersTold {
  readonly epoch: number
  readonly canLose: number
  readonly change?: { readonly phase: string; readonly number: number; readonly seat?: number }
}

/** A copy takes its time where all cores are taken. */
const changeMsMax = 180_000

export async function membersAt({ url }: Pick<TestNode, 'url'>): Promise<MembersTold> {
  const told: MembersTold = JSON.parse(await (await fetch(`${url}/members`)).text())
  return told
}

/** The change of this number, counted from 1, is done, and all three nodes vote again. */
export async function untilChanged(asked: Pick<TestNode, 'url'>, number: number): Promise<void> {
  const probe = async (): Promise<true | undefined> => {
    const { change, canLose } = await membersAt(asked)
    return (change?.number === number && change.phase === 'done' && canLose === 1) || undefined
  }
  await eventually(`change ${number} is done`, probe, changeMsMax)
}

/** The node by itself has each write that was acknowledged. */
export async function untilHasAll(node: TestNode, { acknowledged }: Ledger): Promise<void> {
  await eventually(`${node.id} has all that was acknowledged`, async () => {
    const { bodies } = await contentsAt(node.url, { rows: acknowledged })
    return acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
  })
}
