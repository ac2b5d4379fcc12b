/**
 * The schema that the sessions of tables work on, in two versions: the second one adds an optional
 * property, a table, and where there are global indexes one more and a local one, which store
 * properties, the new one too. As text and as a checked model, since nothing here may export inferred tables.
 */
import { parseSchema } from '../../schema/ddl-parse.ts'
import type { Schema } from '../../schema/model.ts'
import { assert } from '../../src/base/assert.ts'
import type { Tables } from '../../src/tables/tables.ts'

const inStore = 'ENTITY GROUP KEY(store) REFERENCES Store'

/** How long an offer is there, unless it is made anew. */
export const offerSeconds = 3

function schemaText(isSecond: boolean, hasGlobals = false): string {
  const origin = isSecond ? 'optional string origin;' : ''
  return `
CREATE SCHEMA Shop;
CREATE TABLE Store {
  required string store;
  required integer total;
} PRIMARY KEY(store), ENTITY GROUP ROOT;
CREATE TABLE Shelf {
  required string store;
  required int32 shelf;
  required string label;
} PRIMARY KEY(store, shelf), IN TABLE Store, ${inStore};
CREATE TABLE Item {
  required string store;
  required int32 shelf;
  required string item;
  required integer price;
  optional string note;
  repeated string tag;
  ${origin}
} PRIMARY KEY(store, shelf, item), IN TABLE Shelf, ${inStore}, ON DELETE CASCADE;
CREATE TABLE Visit {
  required string store;
  required sequence visit;
  required string who;
} PRIMARY KEY(store, visit), IN TABLE Store, ${inStore};
CREATE TABLE Mark {
  required string store;
  required string mark;
  required string run;
} PRIMARY KEY(store, mark), IN TABLE Store, ${inStore};
CREATE TABLE Offer {
  required string store;
  required string offer;
  required string who;
} PRIMARY KEY(store, offer), IN TABLE Store, ${inStore}, TTL ${offerSeconds} SECONDS;
CREATE LOCAL INDEX OffersByWho ON Offer(store, who);
CREATE LOCAL INDEX ItemsByTag ON Item(store, tag);
CREATE LOCAL INDEX ItemsByPrice ON Item(store, price DESC) STORING (note);
CREATE UNIQUE LOCAL INDEX ShelvesByLabel ON Shelf(store, label);
CREATE LOCAL INDEX VisitsByWho ON Visit(store, who);
${isSecond ? reviews : ''}
${hasGlobals ? globals : ''}
${hasGlobals && isSecond ? secondGlobals : ''}`
}

const reviews = `
CREATE TABLE Review {
  required string store;
  required int32 review;
  required string text;
} PRIMARY KEY(store, review DESC), IN TABLE Store, ${inStore};
CREATE LOCAL INDEX ReviewsByText ON Review(store, text);
`

/** Over all stores. */
const globals = `
CREATE GLOBAL INDEX AllItemsByTag ON Item(tag, price DESC) STORING (note) SHARDS 3 SPREAD 2;
CREATE GLOBAL INDEX AllShelvesByLabel ON Shelf(label) SHARDS 2;
CREATE GLOBAL INDEX AllVisitsByWho ON Visit(who) SHARDS 1;
`
/** They come when there are rows. */
const secondGlobals = `
CREATE GLOBAL INDEX AllItemsByNote ON Item(note) STORING (price, origin) SHARDS 2 SPREAD 2;
CREATE LOCAL INDEX ItemsByNote ON Item(store, note) STORING (price, origin);
`

export type ShopVersion = 1 | 2

export const shopSchemas: Readonly<Record<ShopVersion, Schema>> = {
  1: parsed(schemaText(false)),
  2: parsed(schemaText(true)),
}

/** The same with global indexes. */
export const globalShopSchemas: Readonly<Record<ShopVersion, Schema>> = {
  1: parsed(schemaText(false, true)),
  2: parsed(schemaText(true, true)),
}

function parsed(text: string): Schema {
  const result = parseSchema(text)
  assert(result.ok, 'table-schema: the text is a schema')
  return result.schema
}

/** The tables as a session has opened them. */
export interface Opened {
  readonly db: Tables
  readonly version: ShopVersion
  readonly declared: ShopVersion
}

/** The group of a store. */
export function buildRoot(store: string): {
  readonly table: string
  readonly key: { readonly store: string }
} {
  return { table: 'Store', key: { store } }
}
