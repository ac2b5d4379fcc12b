/**
 * Authorization of requests for cells over HTTP. Where the cluster has a secret, callers send it as
 * `Authorization: Bearer SECRET`. Health and figures stay open; they hold no data.
 */
import { timingSafeEqual } from 'node:crypto'
import { sha256 } from '../base/bytes.ts'

/** A test of requests; without a secret it lets everything through. */
export function authorization(secret: string | undefined): (request: Request) => boolean {
  if (secret === undefined) return () => true
  const wanted = sha256(`Bearer ${secret}`)
  // Hashes are of one length and tell nothing by the time that comparing them takes.
  return (request) => timingSafeEqual(sha256(request.headers.get('authorization') ?? ''), wanted)
}
