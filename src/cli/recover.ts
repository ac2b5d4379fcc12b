/** `trilithon recover`: has a replica set go on with the nodes that are left, where a majority is lost for good. */
import type { Command } from 'commander'
import { StoreError } from '../base/errors.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import { readReplicaSets } from '../config/replica-sets.ts'
import { DataLooks } from '../inspect/data-looks.ts'
import {
  lookAtLeftStore,
  votersOf,
  type LeftStore,
  type UnappliedGroup,
} from '../inspect/recovery-plan.ts'
import { openStoppedNode } from '../inspect/stopped-node.ts'
import { writeRecovery } from '../node/recovery-note.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import type { Options } from './options.ts'
import { counted, countFlushes, print, printJson, say, styledData, table } from './output.ts'
import { withLockedFolder } from './store-folder.ts'
import { passProgress } from './store-progress.ts'
import { formatGroup, makeReadable } from './store-readable.ts'

export function addRecoverCommand(program: Command): void {
  program
    .command('recover')
    .argument('<FOLDER>', 'the data folder of a stopped node that is left')
    .description(
      'where a majority of a replica set is lost for good: go on with the nodes that are left, and without what only the lost ones had',
    )
    .option('--with <NODE>', 'the other node that is left; run the command in its folder, too')
    .option(
      '--epoch <NUMBER>',
      'begin this epoch: the larger one of those that the two folders tell',
    )
    .option('--accept-loss', 'do it; without this the command only tells what it would do')
    .option('--json', 'as one JSON object')
    .action(recover)
}

interface Plan {
  readonly node: NodeId
  readonly storeId: string
  /** The last epoch that the store has heard of. */
  readonly from: number
  readonly voters: readonly NodeId[]
  /** The recovered one, and the nodes that vote in it. */
  readonly epoch: number
  readonly left: readonly NodeId[]
  readonly lost: readonly NodeId[]
  readonly groups: readonly UnappliedGroup[]
  readonly damagedFlushes: number
}

/** Groups that are shown; `--json` has all. */
const shownMax = 20

async function recover(path: string, options: Options): Promise<void> {
  const isAccepted = options['acceptLoss'] === true
  const plan = await withLockedFolder(path, async (notes) => {
    for (const note of notes) say(`note: ${note}`)
    const found = await makePlan(path, options)
    const { storeId, epoch, left: voters } = found
    if (isAccepted) await writeRecovery(path, { storeId, epoch, voters })
    return found
  })
  if (options['json'] === true) printJson({ accepted: isAccepted, ...plan })
  else show(plan, isAccepted)
}

async function makePlan(path: string, options: Options): Promise<Plan> {
  const store = await look(path)
  const { identity, epochs, nextEpoch, groups, damagedFlushes } = store
  const node = identity.node
  const sets = (await readReplicaSets(path)) ?? []
  const first = sets.find((set) => set.includes(node)) ?? []
  const voters = votersOf(store, first)
  if (voters.length === 0) {
    const text = `${path} does not tell which nodes its replica set began with: start its node once, and stop it`
    throw new CliError(text, exitFailure)
  }
  const left = [node, ...readOther(options['with'], node, voters)].toSorted()
  const majority = Math.floor(voters.length / 2) + 1
  if (left.length >= majority) {
    const text = `${left.join(' and ')} are a majority of ${voters.join(', ')}: start them, and nothing is lost`
    throw new CliError(left.length === 1 ? text.replace(' are ', ' is ') : text, exitUsage)
  }
  const lost = voters.filter((one) => !left.includes(one))
  const epoch = readEpoch(options['epoch'], nextEpoch)
  const { storeId } = identity
  return { node, storeId, from: epochs.epoch, voters, epoch, left, lost, groups, damagedFlushes }
}

async function look(path: string): Promise<LeftStore> {
  const progress = passProgress()
  let read = 0
  const node = await openStoppedNode(path, () => undefined)
  try {
    return await lookAtLeftStore(node, {
      nameGroup: makeReadable(node.data && new DataLooks(node.data)).group,
      onBytes: (bytes) => progress('log/', (read += bytes)),
    })
  } catch (error) {
    if (error instanceof StoreError) throw new CliError(`${path}: ${error.message}`, exitFailure)
    throw error
  } finally {
    await node.close()
  }
}

function readOther(given: unknown, node: NodeId, voters: readonly NodeId[]): readonly NodeId[] {
  if (given === undefined) return []
  const name = typeof given === 'string' ? given : ''
  if (isNodeId(name) && voters.includes(name) && name !== node) return [name]
  const others = voters.filter((one) => one !== node).join(', ')
  throw new CliError(
    `--with wants one other voter, of ${others}, and not "${name}"; of more nodes that are left take two, and add the others with empty folders afterwards`,
    exitUsage,
  )
}

function readEpoch(given: unknown, least: number): number {
  if (given === undefined) return least
  const text = typeof given === 'string' ? given : ''
  const epoch = Number(text)
  const isRight = Number.isSafeInteger(epoch) && epoch >= least && epoch % 1_000 === 0
  if (isRight) return epoch
  throw new CliError(
    `--epoch wants a multiple of 1000 that is ${least} at least, and not "${text}"`,
    exitUsage,
  )
}

function show(plan: Plan, isAccepted: boolean): void {
  const { node, from, voters, epoch, left, lost, damagedFlushes } = plan
  print(styledData('bold', `node ${node}: epoch ${from}, voters ${voters.join(', ')}`))
  const names = left.join(' and ')
  const does = left.length === 1 ? 'votes' : 'vote'
  const verb = isAccepted ? 'begins with its next start' : 'would begin'
  print(`epoch ${epoch} ${verb}: ${names} ${does} in it, alone`)
  const isOne = lost.length === 1
  const never = isOne
    ? 'counts as lost for good: its store'
    : 'count as lost for good: their stores'
  print(`${lost.join(', ')} ${never} never ${isOne ? 'votes' : 'vote'} again`)
  print(
    'entries that the lost nodes alone had are gone, and some of them may have been acknowledged',
  )
  if (damagedFlushes > 0)
    print(
      `${countFlushes(damagedFlushes)} of the log damaged: groups in them may stay without a vote`,
    )
  showGroups(plan.groups)
  print('')
  if (!isAccepted) {
    print(
      'nothing was changed. Make sure that the lost nodes do not run; then run this again with --accept-loss',
    )
    return
  }
  if (left.length > 1)
    print(`run the same command in the folder of the other node, with --epoch ${epoch}`)
  print('start the node; then add nodes with empty folders: trilithon nodes add')
}

function showGroups(groups: readonly UnappliedGroup[]): void {
  if (groups.length === 0) {
    print('every position that the log knows of is applied')
    return
  }
  print(`${counted(groups.length, 'group')} with positions that the node has not applied:`)
  const rows = groups.slice(0, shownMax).map(({ name, applied, accepted, missing, group }) => {
    return [name, String(applied), listed(accepted), listed(missing), formatGroup(group)]
  })
  print(
    table([['GROUP', 'APPLIED', 'ACCEPTED: WILL BE CHOSEN', 'MISSING: LOST', '--group'], ...rows]),
  )
  if (groups.length > shownMax) print(`and ${groups.length - shownMax} more: --json lists them`)
}

function listed(positions: readonly number[]): string {
  const [first] = positions
  if (first === undefined) return '-'
  return positions.length === 1 ? String(first) : `${first} and ${positions.length - 1} more`
}
