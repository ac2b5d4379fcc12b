/** `trilithon sets list|add|give|rebalance|stay`: the buckets of replica sets, and other sets for some of them. */
import type { Command } from 'commander'
import { parseCount } from './client.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { addAskFlags } from './node-asks.ts'
import type { Options } from './options.ts'
import { counted, print, printJson, say, table } from './output.ts'
import { addSet } from './sets-add.ts'
import { planEven, type Gift } from './sets-plan.ts'
import { SetsAsks, type Leaving, type SetView } from './sets-asks.ts'
import { onStopSignals } from './signals.ts'

const bucketsAll = 4_096
const pollMs = 500

export function addSetsCommand(program: Command): void {
  const sets = program
    .command('sets')
    .description('replica sets: their shares of the groups of tables, and other shares')
  addAskFlags(sets.command('list'))
    .description('show how many of the 4,096 buckets each replica set has')
    .action(list)
  addAskFlags(sets.command('add'))
    .description('add a replica set to the cluster; its nodes run, and wait for this')
    .argument('<SET>', 'the name of the new set')
    .requiredOption('--nodes <NODE=URL,…>', 'its nodes, as the others reach them')
    .option('--dry-run', 'only say whether the set could be added')
    .option('--wait', 'follow until each set knows of it, and its nodes serve')
    .action(addSet)
  addGiveFlags(sets.command('give'))
    .description('move buckets of one replica set to another one, with their groups')
    .requiredOption('--from <SET>', 'the set that has them: "trilithon sets list" shows the sets')
    .requiredOption('--to <SET>', 'the set that gets them')
    .requiredOption('--buckets <COUNT>', 'how many')
    .action(give)
  addGiveFlags(sets.command('rebalance'))
    .description('move buckets until each replica set has as many as the others')
    .action(rebalance)
  addAskFlags(sets.command('stay'))
    .description('keep the buckets that are leaving a replica set, as long as they are not closed')
    .requiredOption('--from <SET>', 'the set that they are leaving')
    .action(stay)
}

function addGiveFlags(command: Command): Command {
  return addAskFlags(command)
    .option('--dry-run', 'only say how many buckets would move')
    .option('--wait', 'follow the buckets until they are there')
}

async function list(options: Options): Promise<void> {
  const asks = await SetsAsks.open(options)
  const views = await asks.look()
  const isJson = options['json'] === true
  if (isJson) printJson(views.map((view, at) => viewOrReason(view, asks.names[at] ?? '')))
  else {
    const head = ['set', 'buckets', 'share', 'leaving']
    const rows = views.map((view, at) => {
      if (typeof view === 'string') return [asks.names[at] ?? '', 'no answer', '', '']
      const { set, buckets, leaving } = view
      const share = `${((buckets * 100) / bucketsAll).toFixed(1)} %`
      return [set, String(buckets), share, leaving === undefined ? '' : describe(leaving)]
    })
    print(table([head, ...rows]))
  }
  const silent = views.filter((view) => typeof view === 'string')
  if (silent.length > 0) throw new CliError(silent.join('; '), exitUnavailable)
}

function viewOrReason(view: SetView | string, set: string): object {
  if (typeof view === 'string') return { set, why: view }
  const { buckets, leaving } = view
  return { set, buckets, ...(leaving !== undefined && { leaving }) }
}

async function give(options: Options): Promise<void> {
  const [from, to] = [String(options['from']), String(options['to'])]
  const buckets = parseCount('--buckets', String(options['buckets']), 1, bucketsAll)
  await carryOut(await SetsAsks.open(options), [{ from, to, buckets }], options)
}

async function rebalance(options: Options): Promise<void> {
  const asks = await SetsAsks.open(options)
  const gifts = planEven(await lookAtAll(asks))
  if (gifts.length > 0) return carryOut(asks, gifts, options)
  if (options['json'] === true) return printJson({ gifts })
  print('each replica set has its share of the buckets already')
}

async function lookAtAll(asks: SetsAsks): Promise<readonly SetView[]> {
  const views = await asks.look()
  return views.map((view, at) => {
    if (typeof view !== 'string') return view
    throw new CliError(`set ${asks.names[at]} does not answer: ${view}`, exitUnavailable)
  })
}

async function carryOut(asks: SetsAsks, gifts: readonly Gift[], options: Options): Promise<void> {
  const isJson = options['json'] === true
  if (options['dryRun'] === true) {
    checkGifts(gifts, await lookAtAll(asks))
    if (isJson) return printJson({ gifts, dryRun: true })
    for (const gift of gifts) print(`would move ${giftText(gift)}`)
    return print('reads and writes of a group wait while it moves; new groups wait at the end')
  }
  if (options['wait'] !== true) return beginEach(asks, gifts, isJson)
  // A set gives to one other set at a time.
  for (const gift of gifts) {
    await begin(asks, gift)
    await follow(asks, gift)
  }
  if (isJson) return printJson({ gifts })
  for (const gift of gifts) print(`moved ${giftText(gift)}`)
}

/** Throws for a gift that a set would refuse, as far as the views of the sets tell. */
function checkGifts(gifts: readonly Gift[], views: readonly SetView[]): void {
  const names = views.map(({ set }) => set)
  for (const { from, to, buckets } of gifts) {
    const unknown = [from, to].find((one) => !names.includes(one))
    if (unknown !== undefined) {
      throw new CliError(`there is no set ${unknown}; there are ${names.join(', ')}`, exitFailure)
    }
    if (from === to) throw new CliError(`set ${from} has its buckets already`, exitFailure)
    const giver = views.find(({ set }) => set === from)
    if (giver?.leaving !== undefined) {
      const text = `buckets of set ${from} are on their way: ${describe(giver.leaving)}`
      throw new CliError(`${text}; wait until they are there`, exitFailure)
    }
    const all = gifts.reduce((sum, one) => sum + (one.from === from ? one.buckets : 0), 0)
    if (giver === undefined || giver.buckets >= all) continue
    const has = counted(giver.buckets, 'bucket')
    throw new CliError(`set ${from} has ${has}, which are fewer than ${buckets}`, exitFailure)
  }
}

/** The first gift of each set; a set gives to one other set at a time. */
async function beginEach(asks: SetsAsks, gifts: readonly Gift[], isJson: boolean): Promise<void> {
  const first = gifts.filter(({ from }, at) => gifts.findIndex((one) => one.from === from) === at)
  for (const gift of first) await begin(asks, gift)
  if (isJson) return printJson({ gifts: first })
  for (const gift of first) print(`moving ${giftText(gift)}: see trilithon sets list`)
  if (first.length === gifts.length) return
  print('run the same command again when they are there: more is to be moved')
}

async function begin(asks: SetsAsks, { from, to, buckets }: Gift): Promise<void> {
  await asks.change(from, `/sets/give?to=${encodeURIComponent(to)}&buckets=${buckets}`)
}

/** Resolves when the buckets are there. A signal ends the command, and not the move. */
async function follow(asks: SetsAsks, gift: Gift): Promise<void> {
  onStopSignals({
    stop: (signal) => {
      say(`${signal}: the buckets go on moving; see trilithon sets list`)
      process.exit(exitFailure)
    },
  })
  let told = ''
  for (;;) {
    const view = await asks.find(gift.from)
    if (typeof view !== 'string') {
      if (view.leaving === undefined) return
      const text = `set ${gift.from}: ${describe(view.leaving)}`
      if (text !== told) say(text)
      told = text
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

async function stay(options: Options): Promise<void> {
  const set = String(options['from'])
  const view = await (await SetsAsks.open(options)).change(set, '/sets/stay')
  if (options['json'] === true) return printJson(viewOrReason(view, set))
  print(`set ${set} keeps its ${counted(view.buckets, 'bucket')}; groups that have left stay away`)
}

function giftText({ from, to, buckets }: Gift): string {
  return `${counted(buckets, 'bucket')} of set ${from} to set ${to}`
}

function describe({ phase, to, buckets, moved, left = 0, waitsFor }: Leaving): string {
  const behind = left === 0 ? '' : `, ${left} left behind in the last sweep`
  const why = waitsFor === undefined ? '' : `; waits: ${waitsFor}`
  const groups = counted(moved, 'group')
  return `${counted(buckets, 'bucket')} to ${to}, ${phase}, ${groups} moved${behind}${why}`
}
