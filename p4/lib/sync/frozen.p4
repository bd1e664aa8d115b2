// Repetition of a macro for each frozen value of a FETCHED.

#ifndef STATEPLANE_SYNC_FROZEN_P4
#define STATEPLANE_SYNC_FROZEN_P4

#define SYNC_FROZEN_4(M) M(0) M(1) M(2) M(3)
#define SYNC_FROZEN_16(M) SYNC_FROZEN_4(M) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) \
    M(14) M(15)
#define SYNC_FROZEN_32(M) SYNC_FROZEN_16(M) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23) M(24) \
    M(25) M(26) M(27) M(28) M(29) M(30) M(31)
#define SYNC_FROZEN_64(M) SYNC_FROZEN_32(M) M(32) M(33) M(34) M(35) M(36) M(37) M(38) M(39) M(40) \
    M(41) M(42) M(43) M(44) M(45) M(46) M(47) M(48) M(49) M(50) M(51) M(52) M(53) M(54) M(55) \
    M(56) M(57) M(58) M(59) M(60) M(61) M(62) M(63)
#define SYNC_FROZEN_168(M) SYNC_FROZEN_64(M) M(64) M(65) M(66) M(67) M(68) M(69) M(70) M(71) M(72) \
    M(73) M(74) M(75) M(76) M(77) M(78) M(79) M(80) M(81) M(82) M(83) M(84) M(85) M(86) M(87) \
    M(88) M(89) M(90) M(91) M(92) M(93) M(94) M(95) M(96) M(97) M(98) M(99) M(100) M(101) M(102) \
    M(103) M(104) M(105) M(106) M(107) M(108) M(109) M(110) M(111) M(112) M(113) M(114) M(115) \
    M(116) M(117) M(118) M(119) M(120) M(121) M(122) M(123) M(124) M(125) M(126) M(127) M(128) \
    M(129) M(130) M(131) M(132) M(133) M(134) M(135) M(136) M(137) M(138) M(139) M(140) M(141) \
    M(142) M(143) M(144) M(145) M(146) M(147) M(148) M(149) M(150) M(151) M(152) M(153) M(154) \
    M(155) M(156) M(157) M(158) M(159) M(160) M(161) M(162) M(163) M(164) M(165) M(166) M(167)

// M(0) to M(SYNC_FETCH - 1).
#if SYNC_FETCH == 4
#define SYNC_EACH_FROZEN(M) SYNC_FROZEN_4(M)
#elif SYNC_FETCH == 16
#define SYNC_EACH_FROZEN(M) SYNC_FROZEN_16(M)
#elif SYNC_FETCH == 32
#define SYNC_EACH_FROZEN(M) SYNC_FROZEN_32(M)
#elif SYNC_FETCH == 64
#define SYNC_EACH_FROZEN(M) SYNC_FROZEN_64(M)
#elif SYNC_FETCH == 168
#define SYNC_EACH_FROZEN(M) SYNC_FROZEN_168(M)
#else
#error "SYNC_FETCH, the most values of a FETCHED, is 4, 16, 32, 64 or 168"
#endif

#endif
