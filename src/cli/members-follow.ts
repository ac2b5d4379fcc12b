/** Follows a change of the voters to its end, with a line on stderr for each step. */
import { CliError, exitFailure, exitUnavailable, exitUnknownOutcome } from './exit.ts'
import type { MembersAsks } from './members-asks.ts'
import { votersOf } from './members-words.ts'
import { isGoingOn, type ChangeView, type MembersView } from '../node/members-view.ts'
import { say } from './output.ts'
import { onStopSignals } from './signals.ts'

const pollMs = 250
/** The command gives up when no node tells of the voters for this long. */
const silenceMs = 10_000

/** The order of phases: a node that is behind the others tells an earlier one. */
const ranks: Readonly<Record<ChangeView['phase'], number>> = {
  ...{ copying: 0, sealing: 1, done: 2, 'given-up': 2 },
}

/** The voters with a change that has come to its end. */
type Ended = MembersView & { readonly change: ChangeView }

/**
 * Resolves with the voters once the change is done. Throws where it is given up, where another one has followed it, and where
 * no node answers any more. A signal ends the command, and not the change.
 */
export async function followChange(
  asks: Pick<MembersAsks, 'look'>,
  change: ChangeView,
): Promise<Ended> {
  onStopSignals({
    stop: (signal) => {
      say(`${signal}: change ${change.number} goes on; run the same command again to follow it`)
      process.exit(exitFailure)
    },
  })
  let last = change
  let told = ''
  let heardMs = performance.now()
  for (;;) {
    const view = await lookUntil(asks, change, heardMs + silenceMs)
    heardMs = performance.now()
    if (view.change !== undefined && !isBehind(view.change, last)) {
      last = view.change
      const isAnother = last.number !== change.number
      if (isAnother || !isGoingOn(last)) return endedView({ ...view, change: last }, change)
      const text = `change ${last.number}: ${describeStep(last, view)}`
      if (text !== told) say(text)
      told = text
    }
    await delay(pollMs)
  }
}

/** The voters as a node sees them that has heard of the change. */
async function lookUntil(
  asks: Pick<MembersAsks, 'look'>,
  { node, number }: ChangeView,
  untilMs: number,
): Promise<MembersView> {
  for (;;) {
    try {
      // The node that the change is about may be an empty one, a stranger, or gone.
      return (await asks.look(node)).view
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (performance.now() > untilMs) {
        const advice = `change ${number} goes on when they do: run the same command again`
        throw new CliError(`${error.message}; ${advice}`, exitUnavailable)
      }
    }
    await delay(pollMs)
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function isBehind(one: ChangeView, other: ChangeView): boolean {
  if (one.number !== other.number) return one.number < other.number
  return ranks[one.phase] < ranks[other.phase]
}

function endedView(view: Ended, { number }: ChangeView): Ended {
  const { change: last } = view
  if (last.number !== number) {
    const text = `change ${last.number} has followed change ${number}: see trilithon nodes list`
    throw new CliError(text, exitUnknownOutcome)
  }
  if (last.phase === 'done') return view
  throw new CliError(`change ${number} was given up: the voters are as before`, exitFailure)
}

/** How far a change is that goes on. */
function describeStep(
  { phase, kind, node = '', seat, store }: ChangeView,
  view: MembersView,
): string {
  if (phase === 'sealing') {
    const left = votersOf(view).filter(({ standing }) => standing !== 'voting')
    const names = left.map(({ node: one }) => one).join(', ')
    return `sealing, its epoch has begun${names === '' ? '' : `; not voting yet: ${names}`}`
  }
  if (kind !== 'promote' && store === undefined) {
    return `copying, waits for ${node} with an empty data folder and --seat ${seat}`
  }
  return `copying, ${node} takes up what the others hold`
}
