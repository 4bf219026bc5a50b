BEGIN TRANSACTION;
CREATE TABLE answer (
	operation TEXT NOT NULL, 
	media TEXT NOT NULL, 
	content BLOB, 
	path TEXT, 
	PRIMARY KEY (operation), 
	CONSTRAINT somewhere CHECK ((content IS NULL) <> (path IS NULL))
)
 STRICT

;
INSERT INTO "answer" VALUES('c1','application/json',X'7B226F70223A226331227D',NULL);
INSERT INTO "answer" VALUES('t1','application/json',X'7B226F70223A227431227D',NULL);
INSERT INTO "answer" VALUES('t2','application/json',X'7B226F70223A227432227D',NULL);
INSERT INTO "answer" VALUES('t5','application/json',X'7B226F70223A227435227D',NULL);
INSERT INTO "answer" VALUES('l1','application/json',X'7B226F70223A226C31227D',NULL);
INSERT INTO "answer" VALUES('l2','application/json',X'7B226F70223A226C32227D',NULL);
INSERT INTO "answer" VALUES('w1','application/json',X'7B226F70223A227731227D',NULL);
INSERT INTO "answer" VALUES('w2','application/json',X'7B226F70223A227732227D',NULL);
INSERT INTO "answer" VALUES('w3','application/json',X'7B226F70223A227733227D',NULL);
INSERT INTO "answer" VALUES('w4','application/json',X'7B226F70223A227734227D',NULL);
INSERT INTO "answer" VALUES('s1','application/json',X'7B226F70223A227331227D',NULL);
INSERT INTO "answer" VALUES('s2','application/json',X'7B226F70223A227332227D',NULL);
CREATE TABLE block (
	budget TEXT NOT NULL, 
	block TEXT NOT NULL, 
	cost INTEGER NOT NULL CHECK (cost >= 0), 
	delta INTEGER NOT NULL CHECK (delta >= 0), 
	PRIMARY KEY (budget, block), 
	FOREIGN KEY(budget) REFERENCES budget (name)
)
 STRICT

;
INSERT INTO "block" VALUES('clinic','north',144115188075855872,0);
INSERT INTO "block" VALUES('wards','north',685422927713210123,0);
INSERT INTO "block" VALUES('wards','south',231944571699324347,0);
CREATE TABLE book (
	id TEXT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	PRIMARY KEY (id)
)
 STRICT

;
INSERT INTO "book" VALUES('342c937d57eb472cb6184ac4e0c0d2c1',2);
CREATE TABLE budget (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	cost INTEGER NOT NULL CHECK (cost >= 0), 
	delta INTEGER NOT NULL CHECK (delta >= 0), 
	peak_cost INTEGER NOT NULL CHECK (peak_cost >= 0), 
	peak_delta INTEGER NOT NULL CHECK (peak_delta >= 0), 
	PRIMARY KEY (name)
)
 STRICT

;
INSERT INTO "budget" VALUES('clinic',1,'{"adjacency":"add_remove","disjoint_by":"ward","epsilon":2.0,"filter":{"delta":0.0,"epsilon":2.0,"type":"pure"},"unit":"person"}',0,0,144115188075855872,0);
INSERT INTO "budget" VALUES('tax',2,'{"adjacency":"add_remove","delta":2e-06,"epsilon":2.0,"filter":{"alpha":22.17748460295068,"delta":1.999999999996362e-07,"epsilon":1.5678647109532615,"type":"rdp"},"unit":"person"}',233020175184213204,5764607523044722,0,0);
INSERT INTO "budget" VALUES('tax/analyst/badr',1,'{"adjacency":"add_remove","delta":1e-06,"epsilon":0.5,"filter":{"alpha":40.42873659547029,"delta":9.99999999998181e-08,"epsilon":0.265810377739412,"type":"rdp"},"unit":"person"}',145345580684289308,0,0,0);
INSERT INTO "budget" VALUES('lab',1,'{"adjacency":"add_remove","delta":1e-06,"epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}',36668238070052519,0,0,0);
INSERT INTO "budget" VALUES('wards',1,'{"adjacency":"add_remove","delta":1e-06,"disjoint_by":"ward","epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}',73822039482678405,0,685422927713210123,0);
INSERT INTO "budget" VALUES('swaps',1,'{"adjacency":"replace_one","delta":1e-06,"disjoint_by":"ward","epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}',685422927713210123,0,0,0);
INSERT INTO "budget" VALUES('school',1,'{"adjacency":"add_remove","delta":1e-09,"filter":{"delta":1e-09,"rho":0.5,"type":"zcdp"},"rho":0.5,"unit":"person"}',720575940379280,0,0,0);
INSERT INTO "budget" VALUES('idle',1,'{"adjacency":"add_remove","delta":1e-05,"epsilon":3.0,"filter":{"alpha":7.572174088247668,"delta":9.999999999981812e-07,"epsilon":1.6818741792888718,"type":"rdp"},"unit":"person"}',0,0,0,0);
CREATE TABLE entry (
	seq INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	operation TEXT, 
	analyst TEXT, 
	body TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT once UNIQUE (operation, kind)
)
 STRICT

;
INSERT INTO "entry" VALUES(1,'2026-11-17T02:11:56.398329+00:00','open',NULL,NULL,'{"sitr":"0.1.0"}','138ca194b863f9fbf2cba97be1461ac7ba9832f14c2958fe0f455cd7a8ebd6a0');
INSERT INTO "entry" VALUES(2,'2026-11-17T02:11:56.417906+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"disjoint_by\":\"ward\",\"epsilon\":2.0,\"filter\":{\"delta\":0.0,\"epsilon\":2.0,\"type\":\"pure\"},\"unit\":\"person\"}","name":"clinic","nonce":"dce0cd3dfc40e5723cedf2971415f467"}','c13b53aeef6165b0dc4280b8bba4140d690fad97568ca1ac0a9e4a67127ce291');
INSERT INTO "entry" VALUES(3,'2026-11-17T02:11:56.427850+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"epsilon\":1.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":0.5351343280264903,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"tax","nonce":"e4cf46d31bc001267c783ac4df310aab"}','ea49ded6f7b32dda3c7e3ce9d7d288265b1c12a6429f920fa4159415b25c0e59');
INSERT INTO "entry" VALUES(4,'2026-11-17T02:11:56.448893+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"epsilon\":0.5,\"filter\":{\"alpha\":40.42873659547029,\"delta\":9.99999999998181e-08,\"epsilon\":0.265810377739412,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"tax/analyst/badr","nonce":"c0c53b727a1c498590499f76bf0388d7"}','8f9d8cfce84168d0a88dc39d5c8fb88c88ef46b1546572aa920cfe5fcc5bd097');
INSERT INTO "entry" VALUES(5,'2026-11-17T02:11:56.459847+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"epsilon\":1.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":0.5351343280264903,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"lab","nonce":"644daadd3b04ee4b46d1cc8c1d23b09b"}','8cd5a3480b1f69f379489e98ec99ca4faf21845cb6dbab1e6a13e9c52b1de877');
INSERT INTO "entry" VALUES(6,'2026-11-17T02:11:56.463637+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"disjoint_by\":\"ward\",\"epsilon\":1.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":0.5351343280264903,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"wards","nonce":"62a15ac52896a74933d11140f5f2e8e8"}','3a7d6f968937fa20f334e3598f7506291646ba62aa95b745830bb6409788fb60');
INSERT INTO "entry" VALUES(7,'2026-11-17T02:11:56.471615+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"replace_one\",\"delta\":1e-06,\"disjoint_by\":\"ward\",\"epsilon\":1.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":0.5351343280264903,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"swaps","nonce":"f9df8b1f851f79dc5c05cbd8dcacb171"}','68c60123ef8e7fb46f5b28722e24fc2df4977f1a5e2994e67e1514c9dc14e401');
INSERT INTO "entry" VALUES(8,'2026-11-17T02:11:56.477593+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-09,\"filter\":{\"delta\":1e-09,\"rho\":0.5,\"type\":\"zcdp\"},\"rho\":0.5,\"unit\":\"person\"}","name":"school","nonce":"b50b44864cbee485ef1015b361c672a7"}','626ac3115663711c6026152c4780c4e7888879886b23190401f69f5c3a32957e');
INSERT INTO "entry" VALUES(9,'2026-11-17T02:11:56.478901+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-05,\"epsilon\":3.0,\"filter\":{\"alpha\":7.572174088247668,\"delta\":9.999999999981812e-07,\"epsilon\":1.6818741792888718,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"idle","nonce":"49cd1622a3c82254b4c4365313be7f35"}','7a16284342fdb9407aa3535b60541c85bdb9569c8cf51fb47153686857218ce1');
INSERT INTO "entry" VALUES(10,'2026-11-17T02:11:56.491747+00:00','reserve','c1','amina','{"blocks":["north"],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"7140713e9f22d9c4c5238fe5776fa279","purpose":null,"request":"6ce27f03ea3e3ad11472818c26fdfaf9e836a7cc7a89c923017b22437ca92705"}','fcb6b5cc0b91ab8c85eb8184286401356278ae4b51a7b50d6e1111571fed0615');
INSERT INTO "entry" VALUES(11,'2026-11-17T02:11:56.498905+00:00','start','c1','amina','{"holder":"29e2a1beb1e2d52b5c91d80bff245b08c050e0b96d6662d47a0ce7707a3fbe6a"}','23c54a80d5e50796a6124e043db52549a5c3f7b8dfa320dd732481c922395c04');
INSERT INTO "entry" VALUES(12,'2026-11-17T02:11:56.502999+00:00','commit','c1','amina','{"bytes":11,"holder":"8a5e0289fef0f6085498b9643e81796b","media":"application/json","sha256":"8ae971af14703d58d883068c8136302c9319a30d8175c08b936e2e6c9a3b2095"}','65b0e8035aa7dfbcf86d1e9a1730efd1e3a205dae941c69bdfb2454dd2a1d2cb');
INSERT INTO "entry" VALUES(13,'2026-11-17T02:11:56.503932+00:00','reserve','t1','amina','{"blocks":[],"budgets":{"tax":{"cost":151212326428649107,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.1,"schema_version":1,"type":"pure_dp"},"nonce":"d12bb9dbfa611441accb3d6bdc6dad57","purpose":null,"request":"20ac989a2ee1150a87889e14b2b64f35e81f4c689dc241f709946b1370c13da7"}','b84583a3d6daf8a3be84ab127b1b27fa0467a4322de602520852ef6e0fca3c6b');
INSERT INTO "entry" VALUES(14,'2026-11-17T02:11:56.510859+00:00','start','t1','amina','{"holder":"83e6eb387b29c7f257ea17f94370d20471951ae457f0fcc501569fe5b83807d8"}','7350e10b020543c641836be5d9cfcdf7c174b8e68841516262746baeb022f1d7');
INSERT INTO "entry" VALUES(15,'2026-11-17T02:11:56.511446+00:00','commit','t1','amina','{"bytes":11,"holder":"0615fc46f3d754cd6d1cea9a810113fa","media":"application/json","sha256":"9491512563d6974e1d3d89bbc50892180e6419b1f13c1ec581d1f44c3e301799"}','aea259ab3c671d3d97020f71ade43a146a2037df449e0a6059afc358eb769c88');
INSERT INTO "entry" VALUES(16,'2026-11-17T02:11:56.515431+00:00','reserve','t2','badr','{"blocks":[],"budgets":{"tax":{"cost":50740648412887235,"delta":0,"version":1},"tax/analyst/badr":{"cost":145345580684289308,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.05,"schema_version":1,"type":"pure_dp"},"nonce":"6ab3d0d61e7e41725bea5c4729e8ac19","purpose":null,"request":"67c2e5a5aed9ee7405cd4e7b607e6397ab70acfe424f5e0350951d64a5c367a8"}','14d2d324ef863aad37afe6e2d19606ab197ed6d37c1187af99533c86369bd855');
INSERT INTO "entry" VALUES(17,'2026-11-17T02:11:56.518848+00:00','start','t2','badr','{"holder":"8ec0e23edf2b0b7c5960a82ae2b4420d7bf324aa4367373a9afdf9fd3a222d46"}','4345071aa0f8f4342c97daa060c29ae4df0346890c67c8686c4f6a1b7731f8e5');
INSERT INTO "entry" VALUES(18,'2026-11-17T02:11:56.522880+00:00','commit','t2','badr','{"bytes":11,"holder":"352a0a07f285144df777178179309668","media":"application/json","sha256":"0879111fabd9dbe2e57b13af2d1b3098c9c5336d6c62919fdd13bd69befed0d8"}','9796cbd9ae13e496944d69b3620a774c2bc45227fdc2e281fd2101198057afa9');
INSERT INTO "entry" VALUES(19,'2026-11-17T02:11:56.527241+00:00','reserve','t3','amina','{"blocks":[],"budgets":{"tax":{"cost":201539815917442601,"delta":0,"version":1}},"datasets":["tax"],"event":{"noise_multiplier":8.0,"schema_version":1,"type":"laplace"},"nonce":"755c567bc4103fe39be19726705476a7","purpose":null,"request":"18ac0b180c1bde56cc203843c7c8f7fbb0a4fc516d12e9fc10fdf24b44a5f76d"}','3656488b4327479b1a72415384d56e7ac94286eba6d7509fbbbae36675d10c42');
INSERT INTO "entry" VALUES(20,'2026-11-17T02:11:56.528302+00:00','start','t3','amina','{"holder":"f4287ddb57e1ac8ef6449fc465a681cc79d325eb3821017059f462eba6d93bfd"}','da07b0a58c5002e547cd404acbb28918585b3ce442d9e0d8f609aa3e758e8a6b');
INSERT INTO "entry" VALUES(21,'2026-11-17T02:11:56.531096+00:00','reserve','t4','amina','{"blocks":[],"budgets":{"tax":{"cost":370057389703538025,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.2,"schema_version":1,"type":"pure_dp"},"nonce":"40708b4d54079f380fda7ae3550c726f","purpose":null,"request":"43fc971bc07ef072656f32f3985c79b0c36ca9cc5f200ecbc8675e3b7fb753f9"}','69797ceda041662aee3fff97f854643d4c9425ca6264c433dc32abb4b0355c40');
INSERT INTO "entry" VALUES(22,'2026-11-17T02:11:56.538957+00:00','refund','t4','amina','{"nonce":"d697d938d2e680df53e8eaa2f1e10c87","reason":"never ran"}','deb9fbe26f1be61c22367fb12bcf8b1d1179a9d5e5647a8eaaee6118f979e748');
INSERT INTO "entry" VALUES(23,'2026-11-17T02:11:56.548599+00:00','raise',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":2e-06,\"epsilon\":2.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":1.999999999996362e-07,\"epsilon\":1.5678647109532615,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"tax","nonce":"bc928bc0094a4fee2edb619c99409364","reason":"second year"}','85bf30973eb4995433f2c725a5fb6c4fa9c0a196d814ce6a1b7cbff6a464c4fd');
INSERT INTO "entry" VALUES(24,'2026-11-17T02:11:56.550799+00:00','reserve','t5','amina','{"blocks":[],"budgets":{"tax":{"cost":25196502744225481,"delta":5764607523044722,"version":2}},"datasets":["tax"],"event":{"delta":1e-09,"epsilon":0.0625,"schema_version":1,"type":"approximate_dp"},"nonce":"276f2eae58973d67825a25f38d1689df","purpose":null,"request":"3340fedc9e3729e5cc2e3c8718788c14fa6099e7fb0b4665637dfde3a7b3feaf"}','54d707a323419755bc83f6215d21eb5d19576b4923c388c31b82afd8f43fa174');
INSERT INTO "entry" VALUES(25,'2026-11-17T02:11:56.558370+00:00','start','t5','amina','{"holder":"dfdf8bbf12c4d3f497b05c0547700d96b6b9d6c74bf3b219be7e7ba2e1ebf311"}','ebb010e4ca322f4becb8cc6642fe124834b585f28fc5f405ee1c05d444823d37');
INSERT INTO "entry" VALUES(26,'2026-11-17T02:11:56.558910+00:00','commit','t5','amina','{"bytes":11,"holder":"b0aaa9c817b50116ac893cb4e5393c72","media":"application/json","sha256":"fbb5a5f40eed0b9b0d2dc4a7130b3c0648cc2616b593d4a342628629f5567929"}','a84e2192e300396ed91b908da1ab57776275ae4d61f195bb08e0d4748e3e0a1f');
INSERT INTO "entry" VALUES(27,'2026-11-17T02:11:56.561816+00:00','reserve','t6','amina','{"blocks":[],"budgets":{"tax":{"cost":70105894918827498,"delta":0,"version":2}},"datasets":["tax"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"dc45088556cc22f75654deb126a632b0","purpose":null,"request":"f6920e61f698b3bee002da5570a901a07b6ebe7f9a0f83662a99b1b4dde3c115"}','92eb61d1896c7fa4e7999749acc071504a1d60ba63a1efea67eaea5ed6941084');
INSERT INTO "entry" VALUES(28,'2026-11-17T02:11:56.567303+00:00','reserve','l1','amina','{"blocks":[],"budgets":{"lab":{"cost":14931355536424421,"delta":0,"version":1},"school":{"cost":720575940379280,"delta":0,"version":1}},"datasets":["lab","school"],"event":{"noise_multiplier":40.0,"schema_version":1,"type":"gaussian"},"nonce":"3b57840426cf1feb09b7fd5709b1af40","purpose":null,"request":"3a814af7e6da6f196ad120422508949cf3d030fb842e49b2b565c679b78c9002"}','2fda287523a4b21504f9abf6097917bece00834dd478adbfeb47d90c8f96e4ac');
INSERT INTO "entry" VALUES(29,'2026-11-17T02:11:56.567706+00:00','start','l1','amina','{"holder":"0d50a227acc0acbc9addde27c4930c8c2fd565729848f7a10fed63cc73805653"}','7a61dfcd47e458982be9b69e2ffd6fc2aca70483182a5848de0180d3f8d6c626');
INSERT INTO "entry" VALUES(30,'2026-11-17T02:11:56.570869+00:00','commit','l1','amina','{"bytes":11,"holder":"3aa8bb0260a40c04a61975d1ba47377c","media":"application/json","sha256":"fcc5391205c88395dd25c50d7065f0e3b1668fa68731bca213e9dd18c1b3404a"}','8b8236167b3f346fb68658c71f8ab69414365887682a5e4f1926c6399d1c5d22');
INSERT INTO "entry" VALUES(31,'2026-11-17T02:11:56.573364+00:00','reserve','l2','amina','{"blocks":[],"budgets":{"lab":{"cost":21736882533628098,"delta":0,"version":1}},"datasets":["lab"],"event":{"epsilon":0.03125,"schema_version":1,"type":"pure_dp"},"nonce":"9e90f1102827ce5ca17528fcea738fd7","purpose":null,"request":"b7b70522ceafe039dd61d333b41fb575e549c1a5b6b84454060234a747f6375d"}','530054f4331399575b11f24dd373a77136df09043f3b1c7e5a72c4ebbabbc927');
INSERT INTO "entry" VALUES(32,'2026-11-17T02:11:56.573934+00:00','start','l2','amina','{"holder":"ac66b915b7a889db3f6af3c72783819689cd6a5901ec9ab57d56da359a18d823"}','18df4a08a5439c28bebde0e51343e2a37b4b863ce7a61ff733dfc782c8c05bd7');
INSERT INTO "entry" VALUES(33,'2026-11-17T02:11:56.578629+00:00','commit','l2','amina','{"bytes":11,"holder":"a106d64a51bd07535d515de7e895dab2","media":"application/json","sha256":"7cc260453ad95417f8b700e99c59085daad35f11025934faca592b411efd33b9"}','ce5d3d9ac93fdd543fc2d16cbb65803a9793777544421024d9d6c139414899d9');
INSERT INTO "entry" VALUES(34,'2026-11-17T02:11:56.579471+00:00','reserve','w1','amina','{"blocks":["north"],"budgets":{"wards":{"cost":480022988078640289,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"9b64b3fe41939b08fbaad864fd32fbdf","purpose":null,"request":"dc55b2549dfd4f914a6202d70cccb78c55050d6931852bb26bb101424ea9031d"}','7fb9e898ebf9f6c9d72170b84db2e6281c7a0493f35518245c0ba7c5a9926162');
INSERT INTO "entry" VALUES(35,'2026-11-17T02:11:56.582839+00:00','start','w1','amina','{"holder":"9684af91ff968151b3a954773e13f93996acbca42095e3e2162e6cacff7ad10d"}','659f1c98dc7299161e3a550c8fab6179470d4a8b33f78ba02f20eb0a82c1d5b4');
INSERT INTO "entry" VALUES(36,'2026-11-17T02:11:56.586876+00:00','commit','w1','amina','{"bytes":11,"holder":"a4e8b11e372343fe246d0734f345d37f","media":"application/json","sha256":"e00f778933e374f79f485480c5e2444c1c77a29ec4efabbfebcf5b2f4bc7a191"}','6e64075d654b3d30b0e0772b6e02c72bb64c461c5016385fa13104188a18587d');
INSERT INTO "entry" VALUES(37,'2026-11-17T02:11:56.590985+00:00','reserve','w2','amina','{"blocks":["north","south"],"budgets":{"wards":{"cost":205399939634569834,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"ce2d3d47f5060d15a9343a1cbf18b210","purpose":null,"request":"35ac7509b2323e689e68b25cec19fb0db3784b669e95035c473214b90ca520bb"}','954ade5d3db9fc79bf18142ec78e226c4d7996349486a4a91476faa23a2f8fda');
INSERT INTO "entry" VALUES(38,'2026-11-17T02:11:56.594825+00:00','start','w2','amina','{"holder":"30d1d483470fc152d339cd3982dad31f0dd75f0bd0098a667dcdddf377cba7e5"}','005aebfa2fdae40bf1834730a2656bc547c91b3fca22c676788b2b40e004e5b8');
INSERT INTO "entry" VALUES(39,'2026-11-17T02:11:56.598888+00:00','commit','w2','amina','{"bytes":11,"holder":"e372958d02ff7620bbdafa577d619d63","media":"application/json","sha256":"8200c8ca639c4dc91688db44e3f4ebca4d3fae440941c58e3249e9277542b8ea"}','704ecea3fe9cd9b5b97b8d7e9f7d22ae31e687db16f990efb401ee8fe6cd725a');
INSERT INTO "entry" VALUES(40,'2026-11-17T02:11:56.603051+00:00','reserve','w3','amina','{"blocks":["south"],"budgets":{"wards":{"cost":26544632064754513,"delta":0,"version":1}},"datasets":["wards"],"event":{"noise_multiplier":30.0,"schema_version":1,"type":"gaussian"},"nonce":"55006adcca4e46913e28e9a4278656c9","purpose":null,"request":"b116e080f00a5b88e5b5e0529b66211923ac7d0cc337aa8aa6c67a1504f29c56"}','dbcc0087b0be754bce06fa0a66b7fca9ed1e2ad7db695ec8e3ee9bd5a8abbcc8');
INSERT INTO "entry" VALUES(41,'2026-11-17T02:11:56.606831+00:00','start','w3','amina','{"holder":"ad5801d1efe64bf1723dcef8d6e5177b594e977645f4c159037561a6c4a42c40"}','c266fb546a5a2c8eb3edfbf344e0c8ad3389959776d90f4b88729e117e42e9f6');
INSERT INTO "entry" VALUES(42,'2026-11-17T02:11:56.610882+00:00','commit','w3','amina','{"bytes":11,"holder":"805a135656e85e7084a39428a743eb05","media":"application/json","sha256":"832e73f78a020f9058d7f6bd2b54b685a59d2edf0a81fda19dd6a53a363f4713"}','b77f0af89dee65a514843cb0241d75b52a06d7b8af55cfce6a768e2e83c337e9');
INSERT INTO "entry" VALUES(43,'2026-11-17T02:11:56.611859+00:00','reserve','w4','amina','{"blocks":[],"budgets":{"wards":{"cost":73822039482678405,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.0625,"schema_version":1,"type":"pure_dp"},"nonce":"127b26ec816c6914e31451fbf57a9441","purpose":null,"request":"5bea7574a2262cbc0601cad4dc80eb408faeb1be78aefd9fa9bf647588832061"}','6e89c3e24d0629f0db61aa21d33248b801e3ed343381c3bc0585481269bf2ab2');
INSERT INTO "entry" VALUES(44,'2026-11-17T02:11:56.614858+00:00','start','w4','amina','{"holder":"f85ae006dbfe1f3d7f18c31b37e2e37b81107d757a6144446f3fec5e0294323e"}','3114581f197000a18b320e84e4e784e6217f86e1f86c50cfa460c64d4f2598e7');
INSERT INTO "entry" VALUES(45,'2026-11-17T02:11:56.618876+00:00','commit','w4','amina','{"bytes":11,"holder":"a2f2a046068c852fef57e6f2c5b1d24b","media":"application/json","sha256":"b9f0c7a48ddcdf13836762085fe6fba1a070ffab162d2f8a7d3fd334ca4d9e65"}','ec2a74f0fa8c54767507af4390c0684cb041c3038303e689d47c02ad7cdaa277');
INSERT INTO "entry" VALUES(46,'2026-11-17T02:11:56.623179+00:00','reserve','s1','amina','{"blocks":["north"],"budgets":{"swaps":{"cost":205399939634569834,"delta":0,"version":1}},"datasets":["swaps"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"79aff0545020df75f65743bfc8f617ac","purpose":null,"request":"a5842a64f5ffbcfb9d9dde958dafbd27b8f13513daaaeba92defad6f5e8f0aa5"}','240ef81d1e7ee88671ca0bc93b07c6d277b8d1f550ce6e8a956b4841b23b8af8');
INSERT INTO "entry" VALUES(47,'2026-11-17T02:11:56.626838+00:00','start','s1','amina','{"holder":"f023e3ed39e31075491e6cba255e19094f93d3226d009b57b2bfce73691ddbcd"}','e57ebbf02ae589528f073e85b26c020421128b4364a344cf818e26acae657f2a');
INSERT INTO "entry" VALUES(48,'2026-11-17T02:11:56.628995+00:00','commit','s1','amina','{"bytes":11,"holder":"d073fc37c475eb070bc507898bc11d54","media":"application/json","sha256":"7f0c5eac79ece4b2e8ff5ccb75ad15f644d4d4d33eefeafaedd0e4a5a3fae966"}','f347e247df28a204e4c4be4187f1e956788a0dcb7d5c33feb95838ddf77fcfff');
INSERT INTO "entry" VALUES(49,'2026-11-17T02:11:56.630946+00:00','reserve','s2','amina','{"blocks":["south"],"budgets":{"swaps":{"cost":480022988078640289,"delta":0,"version":1}},"datasets":["swaps"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"3f726a49e4bbf900ee996cfb12826d47","purpose":null,"request":"dcb2ee9432f269c0162c8798ea2c6d1e7a30e315ec6f483d45c47d3727fe369b"}','f1b2e79444d83eb67d20add5187c57d5c047a2d67237299c1d59e2089978f166');
INSERT INTO "entry" VALUES(50,'2026-11-17T02:11:56.634919+00:00','start','s2','amina','{"holder":"9929267a9d91b99adf7cd201d85dbec40f2e99d305fc180ee6bd78c6d60c1778"}','841e004a66ec3c5f6c63aa45cd35b17d7da2282b41bd8725d02adf7aa9ce1f9b');
INSERT INTO "entry" VALUES(51,'2026-11-17T02:11:56.639141+00:00','commit','s2','amina','{"bytes":11,"holder":"7600abc3c133e5bb681fa0af2d4b672b","media":"application/json","sha256":"96459bff0dfa8dab27e667da7ffd08b7abcfcf73e12721754f938fd98bfd3ebc"}','2b68e253a6d34aa2702981032f1220f2c4c3ac5b12ae14da3d16a2874d239f13');
CREATE TRIGGER entry_no_update BEFORE update ON entry BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER entry_no_delete BEFORE delete ON entry BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER book_no_delete BEFORE delete ON book BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER answer_no_update BEFORE update ON answer BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER answer_no_delete BEFORE delete ON answer BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
COMMIT;
