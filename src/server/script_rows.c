/* script_rows.c - the scripts that are known.
 *
 * Of the texts, which are not ours, there are only hashes: of their normal
 * forms (script_normalise()), and of those that clients send by their SHA1 at
 * once.
 */
#include "server/script.h"

enum {
    ACQUIRE_MANY,
    EXPIRE_MANY,
    DELETE_MANY,
    REDSYNC_DELETE,
    EXPIRE,
    TOUCH_SET,
    DELETE,
    EXTEND,
    SEMAPHORE,
    SEMAPHORE_KEEP,
    PERMITS,
    PERMITS_KEEP,
    PERMITS_GIVE,
    WARLOCK_KEEP,
    MUTEX_SET,
    EXTEND_SAFE,
    INSPECT,
    EXPIRE_S,
    DELETE_NULL,
    SET,
    SET_S,
    SETNX,
    SETNX_S,
    COUNT_S,
    WINDOW_S,
    WINDOW_S_FIRST,
    COUNT_MS,
    WINDOW_MS,
    WINDOW_MS_FIRST,
    BUCKET,
};

#define SCRIPT(kind, flags, say, keys, args)                              \
    {                                                                     \
        HOLD_KEY_##kind, (flags) | (uint64_t)SAY_##say << HOLD_SAY_SHIFT, \
            keys, args                                                    \
    }

#define LIMIT(told, args)           \
    {                               \
        0, SCRIPT_##told, "k", args \
    }

const struct script scripts[] = {
    [ACQUIRE_MANY] = SCRIPT(SET, HOLD_NX, COUNT, "K", "vt"),
    [EXPIRE_MANY] = SCRIPT(EXPIRE, HOLD_EQUAL, COUNT, "K", "et"),
    [DELETE_MANY] = SCRIPT(DEL, HOLD_EQUAL, COUNT, "K", "e"),
    [REDSYNC_DELETE] = SCRIPT(DEL, HOLD_EQUAL, WHICH, "k", "e"),
    [EXPIRE] = SCRIPT(EXPIRE, HOLD_EQUAL, COUNT, "k", "et"),
    [TOUCH_SET] = SCRIPT(SET, HOLD_NX | HOLD_OWN, COUNT, "k", "vt"),
    [DELETE] = SCRIPT(DEL, HOLD_EQUAL, COUNT, "k", "e"),
    [EXTEND] = SCRIPT(EXPIRE, HOLD_EQUAL | HOLD_XX, COUNT, "k", "eta"),
    [SEMAPHORE] = SCRIPT(SET, HOLD_NX | HOLD_OWN, COUNT, "k", "lht-"),
    [SEMAPHORE_KEEP] = SCRIPT(EXPIRE, 0, COUNT, "k", "-ht-"),
    [PERMITS] = SCRIPT(SET, HOLD_NX | HOLD_OWN, COUNT, "k", "lpht-"),
    [PERMITS_KEEP] = SCRIPT(EXPIRE, 0, COUNT, "k", "-pht-"),
    [PERMITS_GIVE] = SCRIPT(DEL, 0, COUNT, "k", "ph"),
    [WARLOCK_KEEP] = SCRIPT(EXPIRE, HOLD_EQUAL, OK_ZERO, "kte", ""),
    [MUTEX_SET] = SCRIPT(SET, HOLD_NX, OK, "k", "vT"),
    [EXTEND_SAFE] = SCRIPT(EXPIRE, HOLD_EQUAL, REST, "k", "egt"),
    [INSPECT] = SCRIPT(GET, 0, PAIR, "k", ""),
    [EXPIRE_S] = SCRIPT(EXPIRE, HOLD_EQUAL, COUNT, "k", "es"),
    [DELETE_NULL] = SCRIPT(DEL, HOLD_EQUAL, ONE_NULL, "k", "e"),
    [SET] = SCRIPT(SET, HOLD_NX, OK, "k", "vt"),
    [SET_S] = SCRIPT(SET, HOLD_NX, OK, "k", "vs"),
    [SETNX] = SCRIPT(SET, HOLD_NX, COUNT, "k", "vt"),
    [SETNX_S] = SCRIPT(SET, HOLD_NX, COUNT, "k", "vs"),
    [COUNT_S] = LIMIT(COUNTED, "w"),
    [WINDOW_S] = LIMIT(ALLOWED, "nw"),
    [WINDOW_S_FIRST] = LIMIT(ALLOWED, "wn"),
    [COUNT_MS] = LIMIT(COUNTED, "W"),
    [WINDOW_MS] = LIMIT(ALLOWED, "nW"),
    [WINDOW_MS_FIRST] = LIMIT(ALLOWED, "Wn"),
    [BUCKET] = LIMIT(PAIR, "nWbc-"),
};

const struct script_row script_texts[] = {
    /* redlock 5.0.0-beta.2 */
    {"edd4ddecf1460b13c093d7cb4fd999c17d3d76d8", ACQUIRE_MANY},
    {"ad59565c53ba1d8128343d84e98a5aaca5739479", EXPIRE_MANY},
    {"3453e1ef30df39574997ea17c4c985dcd491c55c", DELETE_MANY},
    /* redsync 4 */
    {"e13389955c743d70275d956c123e811524800633", REDSYNC_DELETE},
    {"43e9817a622cba86ea5a7b09b0c27646e33f4699", EXPIRE},
    {"cd1017704a59c673128c6e8b08da814d6bf271c5", TOUCH_SET},
    /* redis-py 4.3.4 */
    {"e42f24df3467cdfc79fa248e3dd03ab9a0fa0508", DELETE},
    {"dc6c1c00e40f7a6e11c6a93fce28cd178075b6b9", EXTEND},
    {"5a046eed3772bb98be54b19035974661ec259b94", EXPIRE},
    /* redis-semaphore 5.8.0 */
    {"8bad600d922f481620e600bd3e6501f354effd7d", DELETE},
    {"d3b3e2260c3be70d52bad129e6d28f8857184ba0", EXPIRE},
    {"fccd322d00b8523b36ac37e5b872116d67c75f2a", SEMAPHORE},
    {"801d95730555677552b2d4a205656384b86f7239", SEMAPHORE_KEEP},
    {"a5577e3d7f8ff2e6d6ff783cfc3cb1d4fbb55b18", PERMITS},
    {"88f870834e047d95466e1c72ce95a4f3b0f0a2f2", PERMITS_KEEP},
    {"b1f146d084f2ecc4701c169bb0d40ea23b7e6928", PERMITS_GIVE},
    /* node-redis-warlock 1.0.2 */
    {"c68b5c122fbf3f3140301a218d463c2df250fcfd", DELETE},
    {"af1d7504738e2baaa18adaf3f4f263924105ab58", WARLOCK_KEEP},
    /* simple-redis-mutex 1.4.0 */
    {"6081674f0fa281a015d79bc8356d9fe8136196fe", MUTEX_SET},
    {"e3ab979deaaf6fcaac794905a129684ff9f8b0b7", DELETE},
    /* redlock-universal 0.8.5 */
    {"278b7fc39f087c6276c7b7c08962022c4fe73ba6", DELETE},
    {"e0030b241864ecb7d71a8921374b5eca14f0ccb2", EXTEND_SAFE},
    {"3b77ef44b319af6a29c14cab47e6fbb106945901", INSPECT},
    /* usual: count in a window */
    {"74d26a024c5eec6bf22ac0ddada6f0e392186326", COUNT_S},
    {"19b2a0935b348305c419d27336c8f2392fec030a", COUNT_S},
    {"22e9d5caa732deae19475006bda889eabc57241f", COUNT_MS},
    {"744b2cef3f6bc6d0d1f4306b4906a994c5b9281e", COUNT_MS},
    {"4a429938c739d1645d05e73764987b3e965a65ba", COUNT_S},
    {"726cd7bf26b5e70632ecdba02e10b1fc9e82926e", COUNT_S},
    {"5f8393032a76a5869cfc509b51d26d2d5e047bae", COUNT_MS},
    {"60f91b0ad99b23db960741ac17174f2e0815515e", COUNT_MS},
    /* usual: delete */
    {"4a2b93c641e26a1ee37fe8a6683a72a507f6895b", DELETE},
    {"f7cfaccb6f3d95f7e0b737120affbc4aa99ea671", DELETE},
    {"2e5e87c086682842f9d4f951f8e55bf472936858", DELETE},
    {"904d83af3410623b0895970811681556b774821d", DELETE},
    {"7645525e565bf25be66f5a4513ac31596aa815dd", DELETE},
    {"05cfd5257274f69a79ad8e88b9f85120d32f1942", DELETE},
    {"120a5810269cf8a991563aa025d5c1d83bb021fe", DELETE},
    {"ef9ba490baf5449a4e93e956748693f5a60e84ad", DELETE},
    {"12a6eb0ed4ada7720a6782b6f20158c279e8e8eb", DELETE},
    {"07d31aa7b4342b8e668f204db75f1734073b46f8", DELETE},
    {"95496a1bfaff6805881899eec71f5f46ea59df2d", DELETE},
    {"f1216e3ef1b1e7b2ed5605471a06a2db98333c0f", DELETE},
    {"feb8bc832c4bd4ab81205e80004b1f686f81b51b", DELETE},
    {"1d8024bd3f661c026ef9378dd4c75712666b9e53", DELETE},
    {"c7f6678ff124b4f55e84cbaaf05a06e00fb9dd60", DELETE},
    {"f0b336d3f6f35a6f8ecff9e7c65d86b84c97becb", DELETE},
    {"3fafeabcad8e515c7920998b89db647e680846bd", DELETE},
    {"81fb7f55718b28a087cf8d9ba042a10f07bcc590", DELETE},
    {"b41f6077395675b3bcfa4e5b29ef00cd76b096d0", DELETE},
    {"5c56cac47f9c876e3f2bec2bc7690ee1ce2e6fa8", DELETE},
    {"56de26bdf72ae6ec0e7ad7b751e4ed2afb3f901c", DELETE},
    {"57b0c420933e724db869dd1aab215ebad6771647", DELETE},
    {"f2f878379a2355e7c9b2ed67395236c7b1264227", DELETE},
    {"c7c10ed2374f930dc7798920174aa4aa6a96fade", DELETE},
    {"48aa9f3a2d1815c063534db4ff32c602bf33294c", DELETE},
    /* usual: delete, else nil */
    {"654c76bf3e17d5e8e384ccb6dc1bd29cae7c0cf5", DELETE_NULL},
    {"be49573233a5d293264ae7d4da517fa89a91e4df", DELETE_NULL},
    /* usual: expire, in ms */
    {"2246c9eb296c94ab8907754845938644013796ae", EXPIRE},
    {"35affd510d7e492c202933e615c63aafbbc266b8", EXPIRE},
    {"c87eb198880b2049945386f90115f394609021f9", EXPIRE},
    {"b261772deef8337bf63112009d43ba5909f7f708", EXPIRE},
    {"b33e970544d334104e277e58ded7fa071a87c37d", EXPIRE},
    {"4060e6a9169dbab2563f1b0be74955d834d1b87e", EXPIRE},
    {"5f83240a4d6c6ce7bebfcf46c3d8e920ca867908", EXPIRE},
    {"d3198a3f18f7ebdddb2e8b96b99aa9fcb517a50e", EXPIRE},
    {"730455c683834658f68595b242e4ef59bdd0f602", EXPIRE},
    {"d6e45fc584d5053b0c8c7727c798b2c0ce1ea0fe", EXPIRE},
    {"3bf1d410011b29bd876785fd9cacc52bdecfaf2e", EXPIRE},
    {"1afd63daf7f760862083744a04a2bc2beec53b4d", EXPIRE},
    {"189e03e5e98159edd690cdf1a8ebb62826d436b3", EXPIRE},
    {"843b5bb827bc264e0a11a39fbd89f5e6b0ffaed7", EXPIRE},
    {"109e8ff96b28917d371dde021f0e6b032e03449e", EXPIRE},
    {"ce18473a18b3cfc361a018d3ed66f1d0df4bb66b", EXPIRE},
    {"9a54c83d4d0398db9971a9c946a4adb139aacaaa", EXPIRE},
    {"d15f85c81c9c24d9fe7a548977498a880c2ffa58", EXPIRE},
    {"a4cbbc36429dc4c7caa0be068c4b5b0848782d7a", EXPIRE},
    /* usual: expire, in seconds */
    {"e27385891d7fe11baa62e6758fefe312e058f336", EXPIRE_S},
    {"9e8a7f1acfc557ddecd023f4c001ab35f827196a", EXPIRE_S},
    {"aa1056dd9f6a434873611031d30bb0758754c989", EXPIRE_S},
    {"e448b83af4098c8ae2bdb5e8dd7082b7d118df94", EXPIRE_S},
    {"bd539a02ad5f5e363843114787ed2b53c8c88c8d", EXPIRE_S},
    {"7a3de25b39a9b0878049740c47a441bf6462e915", EXPIRE_S},
    {"072f21673dcad9966accae300793dbf712670d16", EXPIRE_S},
    {"6c118183b7508a468fcb368d8dfe507c6427d1d9", EXPIRE_S},
    {"de5059fac27abe2843285a794c35cde4d9eed0fa", EXPIRE_S},
    {"560dae10f90e25d17b0476b1de83c7e6cb2ede76", EXPIRE_S},
    {"747455e7ee2264c6d76e3e071c0d9a0903f0adaf", EXPIRE_S},
    {"93b611e97248e351c52bb66b1d90daac7ca78715", EXPIRE_S},
    {"42c02e904f0bf37283dc0d931f85158ede785ea6", EXPIRE_S},
    {"d80cd9c08e2ca694002d571c73b340a391453d34", EXPIRE_S},
    {"61bb21092ce659e75458a51b5a7695241f08e31a", EXPIRE_S},
    {"cac6763314212b5aede75263547deb70fafb63e9", EXPIRE_S},
    {"e420b7aa9152c116db1728b27cd00ea9b3198913", EXPIRE_S},
    {"00ad4bd1a39021c1947a77689629f48aaac49cb6", EXPIRE_S},
    {"85afd7f6d560af1683a7de9e27153b43dbfee964", EXPIRE_S},
    {"ee88754cdd3d90ae4af26a80ed86719c010e623f", EXPIRE_S},
    /* usual: limit in a window */
    {"d09968dfcd7bd051decdd9f267244508f24192e6", WINDOW_S},
    {"572cfff1aa77eb47208a7dd379db77d8ef4826d4", WINDOW_S},
    {"62808f0120c3ce901c3f7ab202960b259be98a91", WINDOW_S},
    {"939d2e03c9ab0ed4c01ce2ce5c84ddd3a824cf6f", WINDOW_S_FIRST},
    {"b8a9fcf1aa937edc8af9588d6d52764ff1ea24c7", WINDOW_S_FIRST},
    {"97ae5553386476b879c5d952d78dee21dd4c41bb", WINDOW_S_FIRST},
    {"f976fc1777cf49763cfb83dabcedb7d0b78fd30b", WINDOW_MS},
    {"24548cd8aea1d195c405fa42d7be1e697a675b26", WINDOW_MS},
    {"178fa23cbd6247489c985ecc3f44ad1fdec3c997", WINDOW_MS},
    {"1606c55a630c038ded4c76eefea40d45b6c398de", WINDOW_MS_FIRST},
    {"b93e01a3b5486b11089ab0852b8de66ac5852a31", WINDOW_MS_FIRST},
    {"4faf6963f2aff4d01c61a743547f8b05549f18b5", WINDOW_MS_FIRST},
    {"0ceed937c7db0f011636da69baf63d43514f3130", WINDOW_S},
    {"70f1cfc858dc5134820d5df559001631bab98957", WINDOW_S},
    {"71a11b76ae82fc421e51ffcbb65190303320152b", WINDOW_S},
    {"c729a62f819f5328b92e27588767dce6f8268f98", WINDOW_S_FIRST},
    {"4b41f9b160bd3bd315bb57c1ef40e64c48a4cafd", WINDOW_S_FIRST},
    {"fe92a71993321e290283ae09d3da4b8c61a1a507", WINDOW_S_FIRST},
    {"9597c70ccc2997b05b6751be276a4e117b07ac11", WINDOW_MS},
    {"cfca46e317ef16e5d2ebc11244a3b534cb6ca15b", WINDOW_MS},
    {"96f53f424773ce7e13185b0c875b5eae3a34fd65", WINDOW_MS},
    {"397f0ec6bde8e33efdbfa34ef464749b6194d15f", WINDOW_MS_FIRST},
    {"c2ad4e903cb5281c2d6b47ab6c5c1b6ec1c0aa32", WINDOW_MS_FIRST},
    {"28376a2f6743cae24930deaebdc7b2ba6065bc6e", WINDOW_MS_FIRST},
    /* usual: set if free, in ms */
    {"14d3bdded247160c6b86c7101b069fd841a18ace", SET},
    {"595bfc0d41a6b56ba481243e799512bebb69ff36", SET},
    {"9f3699351e87582ad9d22b41f4e10299273eea7d", SET},
    {"e7dbe13c5ee830ece51ee1c3440c6780c9d1d23c", SET},
    {"d3a3a118b4ae6512c0fed588745f481f652e7eae", SETNX},
    {"db67d4a752d1e825c994cb1ef76908739d475979", SETNX},
    {"387dd6ad479a04ef8fa7401bea24f1d0f9c8dc6f", SETNX},
    {"0b43894915b1b167ca7c3829547490b7421d3655", SETNX},
    /* usual: set if free, in seconds */
    {"347f1078693ffcff45ee8e2b67fec73d1bbe6f17", SET_S},
    {"13451593b64a1e7ed9168351718b5a14f8b235b2", SET_S},
    {"c4f836f7855b6d001f6eb847416d1c62502f4a5d", SET_S},
    {"827c456e7c26bdd8df7948c274c0cd5d39042082", SET_S},
    {"34b9a1f190b0eee7df57cf2dc83f8545362fcda9", SETNX_S},
    {"40282a2decc2e50458e3c5942da8e87b8713c8d3", SETNX_S},
    {"0e1ed5bef75a6fb00c095766e2cfecfad85fc005", SETNX_S},
    {"58f08492afd2b7bad147506e8ed65bc72f61b814", SETNX_S},
    /* usual: token bucket */
    {"cf7c7710945cbdcaf236695b1bda65ac9d4ff205", BUCKET},
};
const size_t script_text_count = sizeof script_texts / sizeof script_texts[0];

/* As they are sent. */
const struct script_row script_shas[] = {
    /* redlock 5.0.0-beta.2 */
    {"96da70f7716f27d278a5218544df37fd8b0a5e4c", ACQUIRE_MANY},
    {"aed6f382e410db8ba7926d4e5e9aab410bf2a78a", EXPIRE_MANY},
    {"e4612211c9f8f51c257e26e056b0a654b3187242", DELETE_MANY},
    /* redlock 4.2.0 */
    {"e5a322e2634ef59a516e8ea150cb085afafee684", ACQUIRE_MANY},
    {"ce46f80993d5dac20dd066eb301a4e37994bdbed", EXPIRE_MANY},
    {"0f0f23b9048b36752b5be114f357ba083449f908", DELETE_MANY},
    /* redlock 4.1.0 */
    {"1d48b4c6fea2cdadc46b3346de5c2eaf121c7bb3", EXPIRE_MANY},
    {"517e7ed95f00c0c4a209c6a7afcc6ab797d30b85", DELETE_MANY},
    /* redsync 4 */
    {"e950836ed1e694540c503ef9972b8de518044d3b", REDSYNC_DELETE},
    {"d75bb8b5bd13532ddedd17762e772346e39b321e", EXPIRE},
    {"b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", TOUCH_SET},
    /* redis-py 4.3.4 */
    {"c3f8721cbb97f72bc19e972846bd7aaf91901658", DELETE},
    {"a4e8783852e6b949f9ef3a97212805108459a890", EXTEND},
    {"1cac51482acf5858da00f6d685d68f886cd6b6b2", EXPIRE},
    /* redis-semaphore 5.8.0 */
    {"7157921a7cc7cfba979acf6d63f073151df17d12", DELETE},
    {"594683e49a64ebaf975caf5f8079a1d097c438f1", EXPIRE},
    {"43ebdb49120d170e08af560cb4e46e36f8585936", SEMAPHORE},
    {"999a49a1d07671a8027165641001f5bad44608b3", SEMAPHORE_KEEP},
    {"10c1c2e05e7c48aa5824d227b8c51abcde87b18e", PERMITS},
    {"2327bcdc5edb5b8687f6d19b5e1f42b815ebddab", PERMITS_KEEP},
    {"0bd1010c98f1ddd70a6024fd374489a8ea3d2c12", PERMITS_GIVE},
    /* node-redis-warlock 1.0.2 */
    {"5cc368fb92acd8fee3a986dc8e971d6cf28c3b44", DELETE},
    {"78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb", WARLOCK_KEEP},
    /* simple-redis-mutex 1.4.0 */
    {"0c52e1b3d15882965502d8b147c0bb92c9cdd0b4", MUTEX_SET},
    {"85d2723b8dd4a73a5114d0d544e4597994d867ff", DELETE},
    /* redlock-universal 0.8.5 */
    {"fd83166fb3d7235e3ace652b700c9e217c1adc1f", DELETE},
    {"e218d686a8f90368e5cd45074f06ce766cad9987", EXPIRE},
    {"c000e088bd4aca36ab429d3b7a16fc736f4cb6f1", EXTEND_SAFE},
    {"994908155dadb1bed08a5af6dee7fedf956c4826", INSPECT},
};
const size_t script_sha_count = sizeof script_shas / sizeof script_shas[0];
