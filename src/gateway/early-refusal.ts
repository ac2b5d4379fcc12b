/**
 * Refuses over HTTP what has no room as it comes, before it is routed and before anything of its body is read:
 * a refusal is to cost so little that a node under any load has time for its work. The same lanes as for client
 * links say whether there is room (`node/admission.ts`).
 */
import type { Admission, LaneName } from '../node/admission.ts'
import { problemResponse } from './problems.ts'

/** Undefined: it goes on, and may still have to wait for its turn. */
export function refusedEarly(
  admission: Admission | undefined,
  { method, url }: Pick<Request, 'method' | 'url'>,
): Response | undefined {
  const path = readPath(url)
  if (!path.startsWith('/v1/')) return undefined
  const why = admission?.refusalNow(laneOfHttp(method, path))
  return why && problemResponse(why, path)
}

/** By what it does, not by its method alone: batches of reads are posted, too. */
export function laneOfHttp(method: string, path: string): LaneName {
  if (method === 'PUT' || method === 'DELETE') return 'writes'
  return method === 'POST' && /:(?:batchPut|purge)$/.test(path) ? 'writes' : 'reads'
}

function readPath(url: string): string {
  const { pathname } = new URL(url)
  return pathname
}
