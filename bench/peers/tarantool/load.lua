-- load.lua - drives server.lua with many connections and prints JSON.
--
--   tarantool load.lua PORT reserve|lock CLIENTS PIPELINE SECONDS PRODUCTS
--
-- A connection for each client, and a fiber of it for each request that may be
-- under way. One operation is a reservation, or a lock and its unlock. `reserve`
-- checks the sums afterwards.
local clock = require('clock')
local fiber = require('fiber')
local net = require('net.box')

local port, work = arg[1], arg[2]
local clients, pipeline = tonumber(arg[3]), tonumber(arg[4])
local seconds, products = tonumber(arg[5]), tonumber(arg[6])
local WARM_UP_S = 1

local function fail(why)
    io.stderr:write('tarantool: ' .. tostring(why) .. '\n')
    os.exit(1)
end

local works = {}

function works.reserve(conn)
    if conn:call('reserve', {math.random(products)}) == nil then
        fail('not reserved')
    end
end

function works.lock(conn, name)
    local token = conn:call('lock', {name, name})
    if token == nil then
        fail('not granted')
    end
    if not conn:call('unlock', {name, token}) then
        fail('not given back')
    end
end

local took, began, ended = {}, nil, nil
local accepted, live = 0, 0

local function run(conn, name)
    local operation = works[work]
    while ended == nil do
        local from = clock.monotonic()
        operation(conn, name)
        accepted = accepted + 1
        if began ~= nil and ended == nil then
            took[#took + 1] = clock.monotonic() - from
        end
    end
    live = live - 1
end

local function percentile(percent)
    local at = math.ceil(#took * percent / 100)
    return (took[math.max(at, 1)] or 0) * 1e6
end

local function main()
    local first = net.connect('127.0.0.1:' .. port)
    if work == 'reserve' then
        first:call('prepare', {products})
    end
    for i = 1, clients do
        local conn = net.connect('127.0.0.1:' .. port)
        if not conn:is_connected() then
            fail(conn.error)
        end
        for j = 1, pipeline do
            live = live + 1
            local name = string.format('bench:%d:%d', i, j)
            fiber.create(function()
                local good, why = pcall(run, conn, name)
                if not good then
                    fail(why)
                end
            end)
        end
    end
    fiber.sleep(WARM_UP_S)
    began = clock.monotonic()
    fiber.sleep(seconds)
    ended = clock.monotonic()
    while live > 0 do
        fiber.sleep(0.001)
    end
    if work == 'reserve' then
        local count, bad = first:call('check')
        if bad ~= 0 or count ~= accepted then
            fail(string.format('%d products disagree, %d of %d are there',
                               bad, count, accepted))
        end
    end
    table.sort(took)
    print(string.format('{"operations_per_second":%.1f,"p50_us":%.1f,' ..
                        '"p99_us":%.1f}', #took / (ended - began),
                        percentile(50), percentile(99)))
    os.exit(0)
end

math.randomseed(tonumber(clock.time64() % 2147483647))
local good, why = pcall(main)
if not good then
    fail(why)
end
