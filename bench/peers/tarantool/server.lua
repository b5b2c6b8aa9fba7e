-- server.lua - stock and locks as one would keep them in Tarantool.
--
--   tarantool server.lua PORT DIR
--
-- Every change is on disk before its reply (wal_mode fsync; commits that are
-- under way together share a sync). A procedure does not yield before its
-- commit, so that nobody sees a product or a lock in between.
local port, dir = arg[1], arg[2]
local clock = require('clock')

box.cfg{listen = '127.0.0.1:' .. port, work_dir = dir, wal_mode = 'fsync',
        memtx_memory = 4 * 1024 * 1024 * 1024, net_msg_max = 20000,
        log_level = 'warn'}

local TOTAL = 1000000000
local TTL_S = 600
local LOCK_TTL_S = 30

-- As bench/peers/postgres/schema.sql has them.
box.schema.space.create('products', {if_not_exists = true, format = {
    {'id', 'unsigned'}, {'available', 'unsigned'}, {'reserved', 'unsigned'},
    {'sold', 'unsigned'}, {'version', 'unsigned'}}})
box.space.products:create_index('primary', {if_not_exists = true})
box.schema.space.create('reservations', {if_not_exists = true, format = {
    {'id', 'unsigned'}, {'product', 'unsigned'}, {'quantity', 'unsigned'},
    {'status', 'string'}, {'created', 'number'}, {'expires', 'number'}}})
box.space.reservations:create_index('primary',
    {sequence = true, if_not_exists = true})
box.space.reservations:create_index('due',
    {parts = {{'expires', 'number'}}, unique = false, if_not_exists = true})
box.schema.space.create('locks', {if_not_exists = true, format = {
    {'name', 'string'}, {'owner', 'string'}, {'token', 'unsigned'},
    {'expires', 'number'}}})
box.space.locks:create_index('primary',
    {parts = {{'name', 'string'}}, if_not_exists = true})
box.space.locks:create_index('due',
    {parts = {{'expires', 'number'}}, unique = false, if_not_exists = true})
box.schema.sequence.create('tokens', {if_not_exists = true})

local products = box.space.products
local reservations = box.space.reservations
local locks = box.space.locks
local tokens = box.sequence.tokens

-- The tables anew, with so many products.
function prepare(count)
    reservations:truncate()
    products:truncate()
    for first = 1, count, 1000 do
        box.begin()
        for id = first, math.min(first + 999, count) do
            products:insert{id, TOTAL, 0, 0, 0}
        end
        box.commit()
    end
end

-- One unit, if there is one: the reservation's number.
function reserve(id)
    local product = products:get(id)
    if product == nil or product.available < 1 then
        return nil
    end
    local now = clock.time()
    box.begin()
    products:update(id, {{'-', 2, 1}, {'+', 3, 1}, {'+', 5, 1}})
    local made = reservations:insert{nil, id, 1, 'PENDING', now, now + TTL_S}
    box.commit()
    return made.id
end

-- How many reservations there are, and of how many products the sums disagree.
function check()
    local units, bad = {}, 0
    for _, r in reservations:pairs() do
        units[r.product] = (units[r.product] or 0) + r.quantity
    end
    for _, p in products:pairs() do
        if p.reserved ~= (units[p.id] or 0) or
            p.available + p.reserved + p.sold ~= TOTAL then
            bad = bad + 1
        end
    end
    return reservations:len(), bad
end

-- The token, or nil if another holds it.
function lock(name, owner)
    local now = clock.time()
    local held = locks:get(name)
    if held ~= nil and held.expires > now then
        return nil
    end
    box.begin()
    local token = tokens:next()
    locks:replace{name, owner, token, now + LOCK_TTL_S}
    box.commit()
    return token
end

function unlock(name, token)
    local held = locks:get(name)
    if held == nil or held.token ~= token or held.expires <= clock.time() then
        return false
    end
    locks:delete(name)
    return true
end

box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
