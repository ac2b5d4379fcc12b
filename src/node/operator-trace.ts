/** The events of a node that need an operator, as lines of its log. */
import type { Logger } from 'pino'
import type { Trace, TraceEvent } from '../ports/trace.ts'

const damagedBeneath =
  'log/ was found damaged by a scrub; the node goes on, and loses nothing it promised: keep data/, and check this disk'

/** A trace that also tells the operator, as they happen, of events that need attention. */
export function tellingOperator(trace: Trace, logger: Logger): Trace {
  return {
    emit: (event) => {
      trace.emit(event)
      // A start that reads all of a long log takes a while: the operator sees its progress here.
      if (event.kind === 'folding') logger.info(pickFields(event), 'reading the log')
      if (event.kind === 'log-damage') {
        const { isRenewed, ...fields } = event
        const text = isRenewed === true ? damagedBeneath : 'log/ was found damaged'
        logger.error(pickFields(fields), `${text}: see "A damaged log" in operating.md`)
      }
      tellOfRows(event, logger)
      if (event.kind === 'false-claim') {
        logger.error(pickFields(event), 'a false claim: a peer refuses what this log refutes')
      }
      if (event.kind === 'erase-overdue') {
        const text = 'files still have bytes of deleted rows after erase_within_ms'
        logger.error(pickFields(event), `${text}: see trilithon erase status`)
      }
      if (event.kind !== 'clock') return
      const { is } = event
      if (is === 'right') logger.info(pickFields(event), 'the wall clock is right again')
      else logger.warn(pickFields(event), `the wall clock is ${String(is)}: set it`)
    },
    mark: (name) => trace.mark(name),
  }
}

/** Names of groups are bytes: the first ones in hexadecimal do to find them. */
const groupBytesShown = 64

function tellOfRows(event: TraceEvent, logger: Logger): void {
  const { group: told } = event
  const name = Buffer.from(typeof told === 'string' ? told : '', 'latin1')
  const group = name.subarray(0, groupBytesShown).toString('hex')
  if (event.kind === 'ill') {
    logger.error(
      { group },
      'rows of this group are damaged here: others serve it until it is mended',
    )
  }
  if (event.kind === 'mended') logger.info({ group }, 'a peer has mended this group')
  if (event.kind === 'undecided') {
    const what = 'the replicas have different rows of this group, and no majority has the same ones'
    logger.error({ group }, `${what}: it takes no write here; start the nodes that are down`)
  }
}

function pickFields(event: TraceEvent): object {
  const { kind: _, ...fields } = event
  return fields
}
